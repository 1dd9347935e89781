"""A fuzz target for `sparsebayes.load`: damaged and forged model files, by the thousand.

    python tests/fuzz/loader.py --seconds 3600

Each case takes a sound file of a fitted model and changes it: single bytes of the archive, headers and contents of
arrays, entries of the description (exchanged, renamed, given another id or hostile content), or the notes beside it.
The checksums are right again afterwards, so that the change gets as far as it can. A file must then be refused with
`ModelFileError`, or give an estimator, which is asked for a prediction. Meanwhile nothing may be opened but the file
itself, no process started, no module imported, no name looked up by pickle, and loading may not take longer than
`LOAD_SECONDS` or want more than `MEMORY` bytes.

Case k of a seed is always the same: `--seed 0 --start k --cases 1` repeats it. After a failure, or a crash of the
interpreter, the file is at `--keep`.
"""

import argparse
import collections
import contextlib
import io
import json
import random
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np

import sparsebayes

sys.path.insert(0, str(Path(__file__).parents[1]))
import forging
from forging import MARK, SCHEMA, a_dict, a_list, a_tuple, an_object, function, node, plain
from sound_files import seeds

LOAD_SECONDS = 20
PREDICT_SECONDS = 5
MEMORY = 4 * 2**30
HOSTILE = [
    "os.system",
    "builtins.eval",
    "builtins.exec",
    "builtins.open",
    "builtins.map",
    "builtins.getattr",
    "subprocess.Popen",
    "numpy.load",
    "numpy.memmap",
    "numpy.logical_or",
    "numpy.ndarray",
    "numpy.float64",
    "pathlib.Path",
    "collections.OrderedDict",
    "functools.partial",
    "operator.methodcaller",
    "sklearn.pipeline.Pipeline",
    "sklearn.ensemble._stacking.StackingRegressor",
    "sklearn.preprocessing._function_transformer.FunctionTransformer",
    "sklearn.compose._target.TransformedTargetRegressor",
    "sparsebayes.core.kernels.rbf",
    "sparsebayes.core.kernels.squared_distance",
    "sparsebayes.estimators._kernel.KernelFit",
]
LOADERS = [
    *(
        "BytesNode",
        "CachedNode",
        "ConstructorFromReduceNode",
        "DTypeNode",
        "DefaultDictNode",
        "DictNode",
        "FunctionNode",
    ),
    *("JsonNode", "ListNode", "MaskedArrayNode", "MethodNode", "NdArrayNode", "ObjectNode", "OperatorFuncNode"),
    *("PartialNode", "RandomGeneratorNode", "RandomStateNode", "SetNode", "SliceNode", "SparseMatrixNode", "TreeNode"),
    *("TupleNode", "TypeNode"),
]
VALUES = [
    None,
    True,
    0,
    1,
    -1,
    2**31,
    2**63,
    -(2**70),
    1e308,
    float("nan"),
    "",
    "auto",
    "rbf",
    "/tmp/x",
    "tofile",
    "\x1b[2J",
]
VALUES += ["__class__", [], [[1]], {}, {"a": 1}]
DTYPES = ["|V0", "<U0", "|S0", "|O", "<f8", ">f8", "<i4", "|b1", "<M8[s]", "<c16", [("a", "<f8")]]


class Broken(Exception):
    """What the loader must not do."""


class Watch:
    """Sees what the interpreter does, while it is on."""

    EVENTS = ("os.", "subprocess.", "socket.", "shutil.", "ctypes.", "pickle.", "tempfile.", "glob.", "urllib.", "exec")

    def __init__(self):
        self.path = None
        self.on = False
        self.seen = []
        sys.addaudithook(self.hook)

    def hook(self, event, args):
        if not self.on:
            return
        if event == "open" and args[0] != self.path and not isinstance(args[0], int):
            self.seen.append(f"open {args[0]!r}")
        elif event == "import" and args[0] not in sys.modules:
            self.seen.append(f"import {args[0]}")
        elif event.startswith(self.EVENTS) and event not in ("os.listdir", "os.scandir"):
            self.seen.append(f"{event} {args!r}"[:200])


# --- changes ---


def entries(tree):
    """All entries of a description, with the container and key that each is found at."""
    found, waiting = [], [tree]
    while waiting:
        thing = waiting.pop()
        pairs = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
        for key, value in pairs:
            if isinstance(value, dict) and "__loader__" in value:
                found.append((thing, key))
            waiting.append(value)
    return found


def hostile(rng, members):
    """An entry that should not be there."""
    name = rng.choice(HOSTILE)
    made = [
        lambda: plain(rng.choice(VALUES)),
        lambda: node(rng.choice(LOADERS), name, content=rng.choice([None, [], {}, "1", a_list(), a_dict({})])),
        lambda: function(name),
        lambda: node("TypeNode", name),
        lambda: forging.partial_of(function(name), plain("/tmp/x")),
        lambda: a_dict({"/tmp/x": plain(1)}, name=rng.choice(["builtins.dict", name]), key=name),
        lambda: an_object(name, func=function("builtins.eval"), memory=plain("/tmp/x")),
        lambda: a_tuple(*[plain(rng.choice(VALUES)) for _ in range(rng.randrange(4))]),
        lambda: node(
            "NdArrayNode", "numpy.ndarray", type="numpy", file=rng.choice(list(members)), __id__=rng.randrange(9)
        ),
        lambda: node("NdArrayNode", "numpy.ndarray", type="json", content=[function(name)], shape=a_tuple(plain(1))),
    ]
    return rng.choice(made)()


def change_schema(rng, members):
    """One change of the description."""
    schema = json.loads(members[SCHEMA])
    places = entries(schema)
    holder, key = rng.choice(places)
    entry = holder[key]
    other_holder, other_key = rng.choice(places)

    def rename():
        entry["__module__"], _, entry["__class__"] = rng.choice(HOSTILE).rpartition(".")

    def set_attribute():
        objects = [h[k] for h, k in places if h[k]["__loader__"] == "ObjectNode"] + [schema]
        content = rng.choice([each for each in objects if "content" in each and "key_types" in each["content"]])[
            "content"
        ]
        names = [*content["content"], "predict", "transform", "_skl_callbacks", "extra_", "__class__", "memory"]
        name = rng.choice(names)
        if name not in content["content"]:
            content["key_types"]["content"].append(node("TypeNode", "builtins.str"))
        content["content"][name] = hostile(rng, members)

    def renumber():
        texts = [h[k] for h, k in places if h[k]["__loader__"] == "JsonNode"]
        numbers = [each for each in texts if type(json.loads(each["content"])) in (bool, int, float)]
        rng.choice(numbers)["content"] = json.dumps(
            rng.choice([value for value in VALUES if not isinstance(value, str)])
        )

    def deepen():
        for _ in range(rng.choice([3, 60, 300])):
            holder[key] = a_list(holder[key])

    def multiply():
        holder[key] = a_list(*[entry] * rng.choice([2, 30]))

    changes = [
        lambda: holder.__setitem__(key, hostile(rng, members)),
        lambda: holder.__setitem__(key, json.loads(json.dumps(other_holder[other_key]))),
        lambda: entry.update(__id__=rng.choice([other_holder[other_key].get("__id__"), 0, True, 1.0, "1", None, [1]])),
        lambda: entry.update(__loader__=rng.choice([*LOADERS, None, 3])),
        lambda: entry.pop(rng.choice(list(entry))),
        lambda: entry.update(content=rng.choice([*VALUES, json.dumps(rng.choice(VALUES)), [entry.get("content")]])),
        lambda: schema.update(protocol=rng.choice([0, 1, 2, 3, True, 2.0, None])),
        rename,
        renumber,
        renumber,
        renumber,
        set_attribute,
        set_attribute,
        deepen,
        multiply,
    ]
    rng.choice(changes)()
    members[SCHEMA] = json.dumps(schema).encode()


def change_array(rng, members):
    """Another header, other numbers, or fewer of them."""
    name = rng.choice([name for name in members if name.endswith(".npy")])
    content = bytearray(members[name])
    kind = rng.randrange(4)
    if kind == 0:
        shape = tuple(rng.choice([0, 1, 3, -1, 2**20, 2**40, 2**62]) for _ in range(rng.randrange(4)))
        content = bytearray(forging.npy_header(shape, rng.choice(DTYPES))) + content[128:]
    elif kind == 1:
        del content[rng.randrange(len(content)) :]
    elif kind == 2 and len(content) > 128:
        for _ in range(rng.choice([1, 20])):
            content[rng.randrange(128, len(content))] = rng.randrange(256)
    else:
        content[rng.randrange(len(content))] = rng.randrange(256)
    members[name] = bytes(content)


def change_mark(rng, members):
    """Other notes, or another format."""
    mark = json.loads(members[MARK])
    mark[rng.choice(["format", "versions", "metadata", "more"])] = rng.choice(VALUES)
    members[MARK] = json.dumps(mark).encode()


def forged(rng, members):
    """The bytes of a changed file."""
    members = dict(members)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        change = rng.choice([change_schema] * 6 + [change_array] * 3 + [change_mark])
        with contextlib.suppress(LookupError, TypeError, AttributeError, ValueError, RecursionError):
            change(rng, members)  # may stumble over what an earlier one left; or an entry now holds itself
    archive = io.BytesIO()
    compression = zipfile.ZIP_DEFLATED if rng.random() < 0.02 else zipfile.ZIP_STORED
    with zipfile.ZipFile(archive, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    data = bytearray(archive.getvalue())
    if rng.random() < 0.15:
        for _ in range(rng.choice([1, 5])):
            data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.03:
        del data[rng.randrange(len(data)) :]
    return bytes(data)


# --- what must not happen ---


class TooLong(Exception):
    """A prediction that was given up."""


def _give_up(number, frame):
    raise TooLong


def ask(model, X):
    """Predict, in bounded time; a forged model may fail or be slow."""
    signal.setitimer(signal.ITIMER_REAL, PREDICT_SECONDS)
    try:
        model.predict(X)
    except TooLong:
        return "loaded, slow"
    except Exception:
        return "loaded, fails to predict"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "loaded"


def attempt(path, X, watch):
    """Load a file and predict with it: what came of it in two words, or `Broken`."""
    watch.path, watch.seen = str(path), []
    begin = time.perf_counter()
    try:
        watch.on = True
        model = sparsebayes.load(path)
        watch.on = False
        result = "?"
    except sparsebayes.ModelFileError as error:
        result = "refused"
        cause = error
        while cause is not None:
            if isinstance(cause, MemoryError):
                raise Broken("loading wanted too much memory") from error
            cause = cause.__cause__
        if not str(error).isprintable() or len(str(error)) > 2000:
            raise Broken("a message with control characters, or a long one") from error
    finally:
        watch.on = False
    if time.perf_counter() - begin > LOAD_SECONDS:
        raise Broken(f"loading took {time.perf_counter() - begin:.0f} s")
    if result != "refused":
        watch.on = True
        try:
            result = ask(model, X)
        finally:
            watch.on = False
    if watch.seen:
        raise Broken(f"{result}, after {'; '.join(watch.seen)}")
    return result


def run(seed, start, cases, seconds, keep):
    """Fuzz until the cases or the seconds are over; the number of failures."""
    signal.signal(signal.SIGALRM, _give_up)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as folder:
        sound = list(seeds(Path(folder)))
        path = Path(keep or Path(folder) / "case.skops")
        watch, counts, end, k = Watch(), collections.Counter(), time.monotonic() + seconds, start
        _limit_memory()
        while k < start + cases and time.monotonic() < end:
            rng = random.Random(f"{seed}-{k}")
            members, X = rng.choice(sound)
            path.write_bytes(forged(rng, members))
            try:
                counts[attempt(path, X, watch)] += 1
            except Exception as error:
                counts["FAILED"] += 1
                print(f"case {k} of seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
                if keep:
                    break
            k += 1
    print(f"{k - start:,} cases: " + ", ".join(f"{number:,} {what}" for what, number in sorted(counts.items())))
    return counts["FAILED"]


def _limit_memory():
    """Let a request for too much memory fail, where the system can."""
    try:
        import resource
    except ImportError:
        return
    used = (
        int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if sys.platform == "linux" else 0
    )
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main():
    parser = argparse.ArgumentParser(description="Fuzz sparsebayes.load.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="the first case")
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--keep", default="", help="where to leave the file of a failure, at which to stop")
    given = parser.parse_args()
    sys.exit(min(run(given.seed, given.start, given.cases, given.seconds, given.keep), 1))


if __name__ == "__main__":
    main()
