"""Large data: seconds and memory of fits on sparse, wide, tall and streamed rows.

    python benchmarks/scaling.py                 all cases, each in a process of its own
    python benchmarks/scaling.py --case parquet  one of them, here

Seconds are processor time of one thread (set OPENBLAS_NUM_THREADS=1). Memory is the peak of the process, and what it
had before the fit. Data are generated, in float32 where that is the point; files go to a temporary folder.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count
from scipy import sparse

from sparsebayes import ARDRegressor, Moments, RVMClassifier, RVMRegressor, SparseLogisticRegression, read_blocks
from sparsebayes.data.blocks import array_blocks


def peak() -> float:
    """GiB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def timed(name: str, work: Callable[[], Any], told: Callable[[Any], str] = lambda _: "") -> float:
    """Run, and print a row of the table."""
    before, start = peak(), time.process_time()
    answer = work()
    spent = time.process_time() - start
    print(f"| {name} | {spent:.2f} | {peak():.2f} | {before:.2f} | {told(answer)} |", flush=True)
    return spent


def binary_rows(n: int, d: int, n_stored: int) -> tuple[Any, Any, np.ndarray, np.random.Generator]:
    """Rare binary features, of which twenty have strong weights."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array(
        (np.ones(n_stored), (rng.integers(0, n, n_stored), rng.integers(0, d, n_stored))), shape=(n, d)
    )
    X.data[:] = 1.0
    true = rng.choice(d, 20, replace=False)
    return X, X[:, true] @ (3.0 * rng.choice([-1, 1], 20)), true, rng


def found(true: np.ndarray) -> Callable[[Any], str]:
    return lambda model: (
        f"{len(np.intersect1d(model.active_, true))} of {len(true)} true features, {len(model.active_)} kept"
    )


def sparse_rows() -> None:
    X, eta, true, rng = binary_rows(200_000, 5_000, 1_000_000)
    y, classes = eta + rng.standard_normal(200_000), eta + rng.logistic(size=200_000) > 0
    timed("ARD, CSR 200,000×5,000", lambda: ARDRegressor(average=False).fit(X, y), found(true))
    timed("SLR, the same", lambda: SparseLogisticRegression(average=False).fit(X, classes), found(true))


def large_sparse_rows() -> None:
    X, eta, true, rng = binary_rows(1_000_000, 100_000, 10_000_000)
    y = eta + rng.standard_normal(1_000_000)
    timed("ARD, CSR 1,000,000×100,000, 10⁷ stored", lambda: ARDRegressor().fit(X, y), found(true))


def wide_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1_000_000), dtype=np.float32)
    eta, true = 2.0 * (X[:, 0] - X[:, 1] + X[:, 2]), np.arange(3)
    timed("ARD, float32 300×1,000,000", lambda: ARDRegressor().fit(X, eta + rng.standard_normal(300)), found(true))
    classes = eta + rng.logistic(size=300) > 0
    timed("SLR, the same", lambda: SparseLogisticRegression().fit(X, classes), found(true))


def outputs() -> None:
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((500, 2000)), np.zeros((2000, 1000))
    for column in W.T:
        column[rng.choice(2000, 5, replace=False)] = rng.standard_normal(5)
    Y = X @ W + rng.standard_normal((500, 1000))
    timed("ARD, 500×2,000, 1,000 outputs", lambda: ARDRegressor(average=False).fit(X, Y))


def predictions() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_000_000, 20), dtype=np.float32)
    model = ARDRegressor(min_gain=0.0).fit(X[:1000], X[:1000, 0] + rng.standard_normal(1000))
    timed("mean and std of 10⁷×20 float32 rows", lambda: model.predict(X, return_std=True))
    classes = SparseLogisticRegression(average=False).fit(X[:1000], X[:1000, 0] > rng.logistic(size=1000))
    timed("probabilities of the same", lambda: classes.predict_proba(X))


def parquet(n: int = 10_000_000, d: int = 50) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        subprocess.run([sys.executable, __file__, "--write", str(path), str(n), str(d)], check=True)
        names = [f"x{j}" for j in range(d)]
        for precision in ("single", "double"):
            y, c = (read_blocks(path, target=each, features=names, precision=precision) for each in "yc")
            read = timed(f"read 10⁷×50 Parquet, {precision}", lambda y=y: sum(len(block.X) for block in y.rows(None)))
            spent = timed("ARD, one pass", lambda y=y: ARDRegressor(average=False).fit_blocks(y), found(np.arange(10)))
            print(f"one pass is {spent / read:.2f} times reading", file=sys.stderr)
            timed("SLR", lambda c=c: SparseLogisticRegression(average=False).fit_blocks(c), found(np.arange(10)))


def write(path: str, n: int, d: int) -> None:
    """A file of float32 columns, a number and a class."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, w = np.random.default_rng(0), np.zeros(d, dtype=np.float32)
    w[:10] = np.linspace(0.5, 0.05, 10) * (-1) ** np.arange(10)
    schema = pa.schema([*((f"x{j}", pa.float32()) for j in range(d)), ("y", pa.float32()), ("c", pa.int8())])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, n, 500_000):
            size = min(500_000, n - start)
            X = rng.standard_normal((size, d), dtype=np.float32) + 1
            eta = (X - 1) @ w
            y, c = eta + rng.standard_normal(size, dtype=np.float32), eta + rng.logistic(size=size) > 0
            columns = [*(X[:, j].copy() for j in range(d)), y, c.astype(np.int8)]
            file.write_table(pa.table(columns, schema=schema), row_group_size=125_000)


def curves() -> None:
    """Seconds per pass in N and in D, from memory, so that reading does not hide them."""
    rng = np.random.default_rng(0)
    for n, d in ((10_000, 50), (100_000, 50), (1_000_000, 50), (100_000, 10), (100_000, 200), (100_000, 1000)):
        X = rng.standard_normal((n, d), dtype=np.float32)
        y = X[:, 0] - X[:, 1] + rng.standard_normal(n)
        blocks, classes = array_blocks(X, y), array_blocks(X, (y > 0).astype(np.int8))
        timed(f"ARD by blocks, {n:,}×{d:,}", lambda b=blocks: ARDRegressor(average=False).fit_blocks(b))
        timed(f"SLR by blocks, {n:,}×{d:,}", lambda b=classes: SparseLogisticRegression().fit_blocks(b))
    for d in (100, 1000, 3000):
        X = rng.standard_normal((d + 1000, d))
        moments = Moments.of(X, X[:, 0] + rng.standard_normal(len(X)))
        timed(f"ARD from moments, D = {d:,}", lambda m=moments: ARDRegressor(average=False).fit_moments(m))


def candidates() -> None:
    """Relevance vector machines by blocks: seconds and errors in the number of candidates M, and in rows."""
    rng = np.random.default_rng(0)
    for n, m in ((10_000, 500), (100_000, 100), (100_000, 500), (100_000, 2000)):
        X = rng.uniform(-3, 3, (n, 3))
        f = np.sin(2 * X[:, 0]) + X[:, 1] * np.cos(X[:, 2])
        y = f + 0.5 * rng.standard_normal(n)
        blocks, classes = array_blocks(X, y), array_blocks(X, (f + rng.logistic(size=n) > 0).astype(np.int8))

        def error(model: Any, X: np.ndarray = X[:2000], f: np.ndarray = f[:2000]) -> str:
            kept = f"{len(model.relevance_vectors_)} vectors"
            return f"{kept}, RMSE {np.sqrt(np.mean((model.predict(X) - f) ** 2)):.3f}"

        size = f"{n:,} rows, {m:,} candidates"
        for vectors in ("sparse", "all"):
            model = RVMRegressor(vectors=vectors, candidates=m)
            timed(f"RVM ({vectors}) by blocks, {size}", lambda b=blocks, a=model: a.fit_blocks(b), error)
        timed(f"RVC by blocks, {size}", lambda b=classes, m=m: RVMClassifier(candidates=m).fit_blocks(b))


def workers(n: int = 4_000_000, d: int = 200) -> None:
    """Wall-clock seconds of fits on a Dask cluster of 1, 2, 4, ... processes, the rows in their memory beforehand."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    for count in (1, 2, 4, 8, 16):
        if count > cpu_count():
            break
        options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(n_workers=count, **options) as cluster, Client(cluster) as client:
            X = client.persist(da.random.default_rng(0).standard_normal((n, d), chunks=(n // 64, d), dtype=np.float32))
            y = client.persist(X[:, 0] - X[:, 1] + da.random.default_rng(1).standard_normal(n, chunks=n // 64))
            wait([X, y])
            rows = {"ARD": (ARDRegressor(average=False), y), "SLR": (SparseLogisticRegression(average=False), y > 0)}
            for name, (model, target) in rows.items():
                start = time.perf_counter()
                model.fit(X, target)
                print(f"| {name} on {count} workers, {n:,}×{d} | {time.perf_counter() - start:.2f} |", flush=True)


CASES = {
    "sparse": sparse_rows,
    "large-sparse": large_sparse_rows,
    "wide": wide_rows,
    "outputs": outputs,
    "predict": predictions,
    "parquet": parquet,
    "curves": curves,
    "candidates": candidates,
    "workers": workers,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--write", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.write[0], *map(int, options.write[1:]))
    elif options.case:
        CASES[options.case]()
    else:
        print(
            "| fit | processor seconds | peak GiB | before GiB | found |\n| --- | --- | --- | --- | --- |", flush=True
        )
        for case in CASES:
            subprocess.run([sys.executable, __file__, "--case", case], check=True)


if __name__ == "__main__":
    main()
