"""Results as JSON lines, one for each fit: a run can be stopped, resumed and extended by seeds or methods."""

import json
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
from peers import quietly

KEY = ("group", "design", "method", "seed")
"""What identifies a fit."""


def read(path):
    """All records of a file; none if it does not exist."""
    path = Path(path)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def chosen(designs, wanted):
    """The designs with the names that are asked for; all if none is."""
    return [design for design in designs if not wanted or design.name in wanted]


def jobs(group, designs, numbers, methods, judge):
    """A job for each design, seed and method: `judge` of the method's fit and the data, which are drawn when needed."""
    for design in designs:
        for seed in numbers:
            draw = cache(partial(design.draw, seed))
            for name, fit in methods.items():
                yield (group, design.name, name, seed), lambda fit=fit, draw=draw: judge(fit, draw())


def extend(path, jobs):
    """Do the jobs that are not in the file yet and append their results.

    A job is a key (group, design, method, seed) and a function without arguments that returns a dictionary. Jobs of
    one data set should follow each other, so that drawing it once is enough.
    """
    path = Path(path)
    done = {tuple(record[name] for name in KEY) for record in read(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        for key, job in jobs:
            if key in done:
                continue
            record = dict(zip(KEY, key, strict=True)) | job()
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(f"{key[0]:8s} {key[1]:26s} seed {key[3]:3d}  {key[2]:18s} {record['seconds']:8.3f} s", flush=True)


def add_options(parser, out):
    """Command-line options of all benchmarks that write such a file."""
    parser.add_argument("--seeds", type=int, default=6, help="number of data sets of each design")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=out, help="file of results, which is extended")
    parser.add_argument("--table", action="store_true", help="only print the tables of the file")


def seeds(given):
    return range(given.first_seed, given.first_seed + given.seeds)


def warm_up(methods):
    """Fit each method once to small data, so that no time includes imports or just-in-time compilation."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 10))
    y = (X[:, 0] + rng.standard_normal(40) > 0).astype(float)
    for fit in methods.values():
        quietly(fit, X, y)


def timed(fit, X, y, at_least=0.0):
    """The answer of a fit with warnings off, and the processor seconds of all its threads.

    A fit that takes less than `at_least` seconds is repeated until all have taken so long, and the mean is reported:
    the clock of a process may tick in hundredths of a second.
    """
    start, n_fits, spent = time.process_time(), 0, 0.0
    while not n_fits or spent < at_least:
        answer = quietly(fit, X, y)
        n_fits, spent = n_fits + 1, time.process_time() - start
    return answer, spent / n_fits


def claims(answer, true):
    """Numbers of features claimed and of true ones among them; None where there is no claim or no truth."""
    if answer.kept is None:
        return {"kept": None, "hits": None}
    return {"kept": len(answer.kept), "hits": None if true is None else int(np.isin(answer.kept, true).sum())}


def mean(records, name):
    """Mean of a field over the records that have it; nan if none has."""
    values = [record[name] for record in records if record.get(name) is not None]
    return float(np.mean(values)) if values else np.nan


def by(records, *names):
    """Records in a dictionary under the values of the named fields, in order of appearance."""
    groups = {}
    for record in records:
        key = tuple(record[name] for name in names)
        groups.setdefault(key if len(names) > 1 else key[0], []).append(record)
    return groups


def table(header, rows):
    """A table in Markdown; numbers are formatted by the caller."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"
