"""The peer table: all workloads, all installed packages; time, error, claims and sparsity side by side.

    python benchmarks/peer_table.py [--seeds 3] [--only "sinc, 100×1"] [--limit 120] [--table]

Times are processor seconds of one thread, medians over the data sets (seeds). A fit below a tenth of a second is
repeated. A fit that needs more than the limit is stopped and recorded as such, and the method is not tried on the
other data sets of that workload. Each fit is a line of results/peers.jsonl, so a run can be stopped and continued;
then results/peers.csv, docs/figures/peers.png and the tables in docs/peers.md are written. Rows of the CSV file without
fits in peers.jsonl stay as they are. --table only writes figure and tables of the CSV file.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from contenders import available
from limited import limited
from peer_report import publish, read_csv, write_csv
from peers import quietly
from records import add_options, by, chosen, claims, extend, jobs, read, seeds, timed
from rivals import KINDS
from scipy import sparse
from sklearn.metrics import log_loss
from workloads import WORKLOADS

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
SHORTEST = 0.1
"""Seconds below which a fit is repeated."""
CERTAIN = 1e-6
"""Probabilities are at least this in the log loss: no program's rounding shall decide it."""


def single_thread():
    """Start again with one thread: the libraries read these variables when they are loaded, and a fork is then safe."""
    if any(os.environ.get(name) != "1" for name in THREADS):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | dict.fromkeys(THREADS, "1"))


def small(kind):
    """Data on which every method of a kind runs once, so that no time includes imports or compilation."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    signal = X[:, :3] + 0.5 * rng.standard_normal((60, 3))
    if kind in ("boundary", "logistic"):
        return X, (signal[:, 0] > 0).astype(int)
    if kind == "multi-class":
        return X, signal.argmax(axis=1)
    return (sparse.csr_array(X) if kind == "sparse" else X), signal if kind == "outputs" else signal[:, 0]


def warm_up(kind, methods):
    """Fit every method once to small data."""
    for name, fit in methods.items():
        try:
            quietly(fit, *small(kind))
        except Exception as problem:
            print(f"{name} fails on small data of kind {kind}: {problem}")


def judged(fit, data):
    """Seconds, error, log loss of classes, and what is claimed and kept."""
    answer, seconds = timed(fit, data.X, data.y, SHORTEST)
    predicted = np.asarray(answer.predict(data.X_test))
    record = {"seconds": seconds, "n_true": None if data.true is None else len(data.true)}
    if data.y.dtype.kind == "i":
        classes = np.unique(data.y)
        p = np.column_stack([1 - predicted, predicted]) if predicted.ndim == 1 else predicted
        p = np.clip(p, CERTAIN, None)
        record["error"] = float(np.mean(classes[p.argmax(axis=1)] != data.y_test))
        record["log_loss"] = float(log_loss(data.y_test, p / p.sum(axis=1, keepdims=True), labels=classes))
    else:
        record["error"] = float(np.sqrt(np.mean((predicted - data.y_test) ** 2)))
    return record | claims(answer, data.true) | {"vectors": answer.n_vectors}


def limited_jobs(workload, numbers, methods, limit, known):
    """The jobs of a workload under a limit. A method that failed on one data set is not tried on the others."""
    failed = {record["method"]: record for record in known if record["status"] != "ok"}

    def bounded(method, job):
        if method not in failed:
            result = {"seconds": np.nan} | limited(job, limit)
            if result["status"] == "ok":
                return result
            failed[method] = result
        return {name: failed[method][name] for name in ("seconds", "status")}

    for key, job in jobs(workload.kind, [workload], numbers, methods, judged):
        yield key, lambda key=key, job=job: bounded(key[2], job)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", help="names of workloads; all by default")
    parser.add_argument("--methods", nargs="+", help="names of methods; all by default")
    parser.add_argument("--limit", type=float, default=120, help="processor seconds of a fit")
    add_options(parser, Path(__file__).parent / "results" / "peers.jsonl")
    parser.set_defaults(seeds=3)
    given = parser.parse_args()
    warm = set()
    for workload in [] if given.table else chosen(WORKLOADS, given.only):
        methods = available(KINDS[workload.kind])
        if workload.kind not in warm:
            warm_up(workload.kind, methods)
            warm.add(workload.kind)
        methods = {name: fit for name, fit in methods.items() if name in (given.methods or methods)}
        known = by(read(given.out), "design").get(workload.name, [])
        extend(given.out, limited_jobs(workload, seeds(given), methods, given.limit, known))
    if not given.table:
        write_csv(read(given.out))
    publish(read_csv())


if __name__ == "__main__":
    single_thread()
    main()
