"""Forged model files: the parts that skops describes objects with, and a way to put them into a file."""

import io
import json
import zipfile

import numpy as np

SCHEMA, MARK = "schema.json", "sparsebayes.json"


def node(loader, name, **more):
    """An entry of the description; `name` is the full name of a type or function."""
    module, _, attribute = name.rpartition(".")
    return {"__class__": attribute, "__module__": module, "__loader__": loader, **more}


def plain(value):
    """A number, a text or None."""
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def items(loader, name, *values):
    return node(loader, name, content=list(values))


def a_list(*values):
    return items("ListNode", "builtins.list", *values)


def a_tuple(*values):
    return items("TupleNode", "builtins.tuple", *values)


def a_dict(values, name="builtins.dict", key="builtins.str"):
    types = a_list(*[node("TypeNode", key) for _ in values])
    return node("DictNode", name, content=dict(values), key_types=types)


def an_object(name, **attributes):
    return node("ObjectNode", name, content=a_dict(attributes))


def objects(*values):
    """A one-dimensional array of objects."""
    return node("NdArrayNode", "numpy.ndarray", type="json", content=list(values), shape=a_tuple(plain(len(values))))


def partial_of(function, *args, **kwds):
    content = {"func": function, "args": a_tuple(*args), "kwds": a_dict(kwds), "namespace": a_dict({})}
    return node("PartialNode", "functools.partial", content=content)


def function(name):
    return node("FunctionNode", name)


def npy(array):
    """The bytes of an array in NumPy's format."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def npy_header(shape, descr="<f8"):
    """A header that promises an array, without the array."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def array(members, value, number):
    """An entry for an array (or the bytes of one), which becomes a member of the archive."""
    members[f"{number}.npy"] = value if isinstance(value, bytes) else npy(value)
    return node("NdArrayNode", "numpy.ndarray", type="numpy", file=f"{number}.npy", __id__=number)


def members_of(file):
    with zipfile.ZipFile(file) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def rewritten(file, change, compression=zipfile.ZIP_STORED):
    """The file with its members changed: `change` gets them by name, with what is JSON read."""
    members = members_of(file)
    for name in (SCHEMA, MARK):
        members[name] = json.loads(members[name])
    change(members)
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))


def with_attribute(file, name, forged):
    """The file with an attribute of its outermost object set."""
    rewritten(file, lambda members: members[SCHEMA]["content"]["content"].update({name: forged}))
    # skops pairs keys with their types: one type more, where the attribute is new.

    def complete(members):
        content = members[SCHEMA]["content"]
        missing = len(content["content"]) - len(content["key_types"]["content"])
        content["key_types"]["content"] += [node("TypeNode", "builtins.str")] * missing

    rewritten(file, complete)
