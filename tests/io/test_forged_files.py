"""Damaged and forged files: they are refused, and nothing of them is run."""

import json
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
from forging import MARK, SCHEMA, a_list, items, node, npy, npy_header, plain, rewritten
from model_answers import assert_same, kernel_fit

from sparsebayes import (
    ModelFileError,
    load,
)


def replaced(file, name, change):
    """The file with the text of one member changed."""
    rewritten(file, lambda members: members.update({name: change(json.dumps(members[name])).encode()}))


# --- damaged files ---


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


@pytest.mark.parametrize("content", [b"", b"P", b"id,y\n1,2\n", b"PK\x03\x04", b"PK\x03\x04" + bytes(100)])
def test_something_else_is_no_model_file(content, path):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=str(path)):
        load(path)


def test_a_truncated_file_is_refused(file):
    content = file.read_bytes()
    for size in np.linspace(0, len(content) - 1, 40).astype(int):
        file.write_bytes(content[:size])
        with pytest.raises(ModelFileError):
            load(file)


def test_a_flipped_bit_is_seen_or_does_no_harm(model, file, data):
    """Checksums cover what is stored; the rest of a zip archive (dates, permissions) says nothing of the model."""
    content, rng, n_refused = file.read_bytes(), np.random.default_rng(0), 0
    for place in rng.integers(0, len(content), 150):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        try:
            again = load(file)
        except ModelFileError:
            n_refused += 1
        else:
            assert_same(again, model, data[0])
    assert n_refused > 120


# --- forged files: nothing of them is run ---


def called_on_a_key(function, argument):
    """skops calls the type of a dictionary key on the key."""
    types = a_list(node("TypeNode", function))
    return node("DictNode", "builtins.dict", content={argument: plain(1)}, key_types=types)


FORGERIES = {
    "type of a key": lambda command: called_on_a_key("os.system", command),
    "eval of a key": lambda command: called_on_a_key("builtins.eval", f"__import__('os').system({command!r})"),
    "list type": lambda command: items("ListNode", "os.system", plain(command)),
    "set type": lambda command: items("SetNode", "os.system", plain(command)),
    "dict type": lambda command: node(
        "DictNode", "sparsebayes.app.cli.run", content={}, key_types=items("ListNode", "builtins.list")
    ),
    "constructor": lambda command: node(
        "ConstructorFromReduceNode", "os.system", content=items("TupleNode", "builtins.tuple", plain(command))
    ),
    "constructor of ours": lambda command: node(
        "ConstructorFromReduceNode", "sparsebayes.core.basis.LinearBasis", content=items("TupleNode", "builtins.tuple")
    ),
    "object": lambda command: node("ObjectNode", "subprocess.Popen"),
    "our function as an object": lambda command: node("ObjectNode", "sparsebayes.core.kernels.rbf"),
    "our module's import": lambda command: node("ObjectNode", "sparsebayes.estimators._kernel.partial"),
    "private module": lambda command: node("ObjectNode", "sparsebayes.io.model_file.ModelFile"),
    "method": lambda command: node("MethodNode", "os.system", content={"func": "system", "obj": plain(command)}),
    "operator": lambda command: node(
        "OperatorFuncNode", "operator.methodcaller", attrs=items("TupleNode", "builtins.tuple", plain(command))
    ),
    "unknown loader": lambda command: node("SystemNode", "os.system"),
    "loader of no kind": lambda command: node(["ListNode"], "builtins.list"),
    "tree": lambda command: node("TreeNode", "sklearn.tree._tree.Tree"),
    "sparse matrix": lambda command: node("SparseMatrixNode", "scipy.sparse._base.spmatrix", type="scipy", file=MARK),
    "no node": lambda command: {"content": command},
    "no class": lambda command: {"__loader__": "ObjectNode"},
    "relative module": lambda command: node("ObjectNode", "sklearn..os.system"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_file_is_refused_and_runs_nothing(forgery, file, sentinel):
    forged = FORGERIES[forgery](f"{sys.executable} -c 'open({str(sentinel)!r}, chr(119))'")
    rewritten(file, lambda members: members[SCHEMA]["content"]["content"].update(verbose=forged))
    with pytest.raises(ModelFileError, match=r"model\.skops"):
        load(file)


@pytest.mark.parametrize("forgery", ["type of a key", "eval of a key", "list type", "constructor"])
@pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell")
def test_the_forgeries_are_live(forgery, file, tmp_path):
    """With everything trusted they do run: what refuses them above is the list."""
    done = tmp_path / "done"
    forged = FORGERIES[forgery](f"touch {done}")
    if forgery == "list type":
        forged["__class__"], forged["__module__"] = "Popen", "subprocess"
        forged["content"] = [plain("touch"), plain(str(done))]
    rewritten(file, lambda members: members[SCHEMA]["content"]["content"].update(verbose=forged))
    loaded = skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))
    if forgery == "list type":
        loaded.verbose.wait()
    assert done.exists()


@pytest.mark.parametrize(
    "function", ["os.system", "builtins.eval", "builtins.exec", "numpy.load", "numpy.ctypeslib.load_library"]
)
def test_a_foreign_function_as_kernel_is_refused(function, file):
    def change(members):
        checked = kernel_fit(members)["content"]["content"]["basis"]["content"]["content"]["kernel"]
        standardised = checked["content"]["content"]["kernel"]
        inner = standardised["content"]["content"]["kernel"]["content"]["func"]
        assert inner["__class__"] == "rbf"
        inner |= node("FunctionNode", function)

    rewritten(file, change)
    with pytest.raises(ModelFileError, match=function.rpartition(".")[2]):
        load(file)


class Exploit:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_under_another_name_is_refused(path, sentinel):
    path.write_bytes(pickle.dumps(Exploit(sentinel)))
    with pytest.raises(ModelFileError, match="zip"):
        load(path)


def arrays(members, content):
    """All members that are arrays, with another content."""
    return dict.fromkeys([name for name in members if name.endswith(".npy")], content)


def test_a_pickle_inside_an_array_is_refused(file, sentinel):
    forged = npy(np.array([Exploit(sentinel)], dtype=object))
    rewritten(file, lambda members: members.update(arrays(members, forged)))
    with pytest.raises(ModelFileError, match="allow_pickle"):
        load(file)


def test_something_that_is_no_model_is_refused(path, file):
    rewritten(file, lambda members: members.update({SCHEMA: plain("hello") | {"protocol": 2}}))
    with pytest.raises(ModelFileError, match="no model but"):
        load(file)


# --- small files that would become large ---


def test_a_compressed_member_is_refused_before_it_is_unpacked(file):
    rewritten(file, lambda members: members.update(bomb=bytes(50_000_000)), zipfile.ZIP_DEFLATED)
    assert file.stat().st_size < 200_000
    with pytest.raises(ModelFileError, match="compressed or overlap"):
        load(file)


def test_a_compressed_member_is_refused_even_if_small(file):
    with zipfile.ZipFile(file, "a", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("more", b"abc")
    with pytest.raises(ModelFileError, match="compressed or overlap"):
        load(file)


def test_members_that_overlap_are_refused(file):
    with zipfile.ZipFile(file, "a") as archive:
        first = archive.infolist()[0]
        archive.filelist += [first] * 1000
        archive._didModify = True
    with pytest.raises(ModelFileError, match="compressed or overlap"):
        load(file)


def test_one_array_in_many_places_is_refused(file):
    """Each place would hold its own copy."""

    def change(members):
        fields = members[SCHEMA]["content"]["content"]
        array = fields["dual_coef_"]
        fields["dual_coef_"] = a_list(*[array | {"__id__": -k} for k in range(1000)])

    rewritten(file, change)
    with pytest.raises(ModelFileError, match="several places"):
        load(file)


def test_an_array_that_claims_to_be_huge_is_refused(file):
    rewritten(file, lambda members: members.update(arrays(members, npy_header((10**14,)))))
    with pytest.raises(ModelFileError, match="an array of shape"):
        load(file)


@pytest.mark.parametrize("depth", [400, 20_000])
def test_a_deep_description_is_refused(depth, file):
    """The second is too deep for the parser of JSON already."""
    rewritten(file, lambda members: members[SCHEMA]["content"]["content"].update(verbose=plain("here")))
    inner = json.dumps(plain("here"))
    start = json.dumps(items("ListNode", "builtins.list", 0))[: -len("0]}")]
    replaced(file, SCHEMA, lambda schema: schema.replace(inner, start * depth + inner + "]}" * depth))
    with pytest.raises(ModelFileError, match="nested too deep"):
        load(file)
