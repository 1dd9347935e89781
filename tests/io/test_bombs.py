"""Model files that would call something, never end, or fill the memory while they are loaded: each is refused first."""

import json
import os
import zipfile

import pytest
from forging import MARK, SCHEMA, a_list, array, function, node, npy_header, plain, rewritten, with_attribute

from sparsebayes import ARDRegressor, ModelFileError, RVMRegressor, load, save
from sparsebayes.io import archive

# --- a function that is called while loading ---


def test_a_repeated_id_with_another_body_is_refused(path, sentinel, data, refused):
    """skops calls what `key_types` holds, and takes an entry with the id of an earlier one for that one."""
    save(RVMRegressor().fit(*data), path)

    def change(members):
        content = members[SCHEMA]["content"]["content"]
        # partial(...) would be called on the key. It is listed where a kernel may stand.
        called = function("sparsebayes.core.kernels.rbf") | {"__id__": 77}
        content["kernel"] = called
        types = a_list(node("TypeNode", "builtins.str", __id__=77))
        content["verbose"] = node("DictNode", "builtins.dict", content={str(sentinel): plain(1)}, key_types=types)

    rewritten(path, change)
    refused(path, "id 77 stands for two different things")


@pytest.mark.parametrize("number", [True, 77.0, "77", [77], None])
def test_an_id_that_is_no_integer_is_refused(number, path, data, refused):
    """Python takes 77.0 and 77 for the same key, and so would skops."""
    save(RVMRegressor().fit(*data), path)
    with_attribute(path, "verbose", plain(1) | {"__id__": number})
    refused(path, "id")


# --- files that would never end, or fill the memory ---


def test_lists_shared_by_their_ids_are_refused(path, refused):
    save(ARDRegressor(), path)
    forged = plain(1) | {"__id__": 1}
    for level in range(2, 30):
        forged = a_list(forged, node("ListNode", "builtins.list", content=[], __id__=level - 1)) | {"__id__": level}
    with_attribute(path, "verbose", forged)
    refused(path, "id")


def test_a_list_that_holds_itself_is_refused(path, refused):
    save(ARDRegressor(), path)
    with_attribute(path, "verbose", a_list(a_list() | {"__id__": 5}) | {"__id__": 5})
    refused(path, "id 5")


@pytest.mark.parametrize(
    ("shape", "descr"),
    [
        ((2**40,), "|V0"),
        ((2**40,), "<U0"),
        ((2**20, 2**20), "|S0"),
        ((10**14,), "<f8"),
        ((2**40, 0), "<f8"),
        ((3,), "|O"),
        ((1,), [("f", "<f8"), ("g", "|V0", (2**30,))]),
        ((-1,), "<f8"),
    ],
)
def test_an_array_that_promises_more_than_it_holds_is_refused(shape, descr, path, refused):
    save(ARDRegressor(), path)

    def change(members):
        members[SCHEMA]["content"]["content"]["a"] = array(members, npy_header(shape, descr), 99)

    rewritten(path, change)
    refused(path, "array")


def test_an_array_with_more_bytes_than_numbers_is_refused(path, data, refused):
    save(ARDRegressor().fit(*data), path)

    def change(members):
        fields = members[SCHEMA]["content"]["content"]
        members[fields["coef_"]["file"]] += b"more"

    rewritten(path, change)
    refused(path, "array")


@pytest.mark.parametrize("number", [True, 1.0, "1", None])
def test_a_format_that_is_no_integer_is_refused(number, path, refused):
    """In Python True equals 1."""
    save(ARDRegressor(), path)
    rewritten(path, lambda members: members[MARK].update(format=number))
    refused(path, "damaged")


@pytest.mark.parametrize("protocol", [True, 2.0, 1, 10**6])
def test_another_protocol_of_skops_is_refused(protocol, path, refused):
    save(ARDRegressor(), path)
    rewritten(path, lambda members: members[SCHEMA].update(protocol=protocol))
    refused(path, "protocol")


def test_too_many_entries_are_refused(path, monkeypatch):
    save(ARDRegressor(), path)
    monkeypatch.setattr(archive, "MOST_ENTRIES", 10)
    with pytest.raises(ModelFileError, match="more than 10 entries"):
        load(path)
    with pytest.raises(ModelFileError, match="more than 10 entries"):
        save(ARDRegressor(), path)


@pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_JSON", "MOST_MEMBERS"])
def test_too_large_a_file_is_refused(limit, path, data, monkeypatch, refused):
    save(RVMRegressor().fit(*data), path)
    monkeypatch.setattr(archive, limit, 10)
    refused(path, "10")


def test_a_description_that_is_too_deep_is_refused(path, refused):
    save(ARDRegressor(), path)
    forged = plain(1)
    for _ in range(100):
        forged = a_list(forged)
    with_attribute(path, "verbose", forged)
    refused(path, "deep")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are named pipes on POSIX only")
def test_a_pipe_is_refused_instead_of_waited_for(path, refused):
    os.mkfifo(path)
    refused(path, "regular file")


def test_duplicate_members_are_refused(path, refused):
    save(ARDRegressor(), path)
    with zipfile.ZipFile(path) as archive:
        schema = archive.read(SCHEMA)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr(SCHEMA, json.dumps(json.loads(schema)))
    refused(path, "twice")
