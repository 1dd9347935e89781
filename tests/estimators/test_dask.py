"""Dask: the answers of rows in memory, on the local scheduler and on a cluster of two worker processes."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes import (
    ARDRegressor,
    BLSRegressor,
    RVMClassifier,
    RVMRegressor,
    SparseLogisticRegression,
    SparsePoissonRegressor,
    VBLogisticRegression,
    read_blocks,
)

da = pytest.importorskip("dask.array", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8))
    eta = X[:, 0] - X[:, 1]
    return X, {
        ARDRegressor: eta + rng.standard_normal(3000),
        SparseLogisticRegression: np.where(eta + rng.logistic(size=3000) > 0, "b", "a"),
        SparsePoissonRegressor: rng.poisson(np.exp(0.4 * eta)),
        VBLogisticRegression: eta + rng.logistic(size=3000) > 0,
    }


def lazy(values, chunk=700):
    return da.from_array(values, chunks=(chunk, *values.shape[1:]))


@pytest.mark.parametrize("cls", [ARDRegressor, SparseLogisticRegression, SparsePoissonRegressor, VBLogisticRegression])
def test_fit_and_predict_of_arrays(cls, data):
    X, targets = data
    y = targets[cls]
    single = {"tol": 1e-10, "max_iter": 20_000} if cls is VBLogisticRegression else {"average": False}
    whole, found = cls(**single).fit(X, y), cls(**single).fit(lazy(X), lazy(y, 900))
    assert_allclose(found.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
    answer = found.predict(lazy(X))
    assert isinstance(answer, da.Array)
    assert answer.shape == (3000,)
    assert_array_equal(answer.compute(), found.predict(X))
    if hasattr(found, "predict_proba"):
        assert_allclose(found.predict_proba(lazy(X)).compute(), found.predict_proba(X), rtol=1e-12)
    else:
        mean, std = found.predict(lazy(X), return_std=True)
        assert_allclose(std.compute(), found.predict(X, return_std=True)[1], rtol=1e-12)
        assert_allclose(found.predict_interval(lazy(X)).compute(), found.predict_interval(X), rtol=1e-12)
        assert mean.chunks == lazy(X).chunks[:1]


@pytest.mark.parametrize("cls", [RVMRegressor, RVMClassifier])
def test_kernel_models(cls, data):
    """Centres and width are given, so that no sample makes a difference."""
    X, targets = data
    y = targets[ARDRegressor if cls is RVMRegressor else SparseLogisticRegression]
    model = cls(vectors="sparse", candidates=X[:20], gamma=0.1, standardize=False)
    whole, found = model.fit(X, y), cls(**model.get_params()).fit(lazy(X), lazy(y))
    answer = found.predict(lazy(X)) if cls is RVMRegressor else found.predict_proba(lazy(X))
    assert isinstance(answer, da.Array)
    expected = whole.predict(X) if cls is RVMRegressor else whole.predict_proba(X)
    # Regression is the same search on the same moments; a classifier's vectors are those of a sample.
    assert_allclose(answer.compute(), expected, rtol=1e-6 if cls is RVMRegressor else 0.1, atol=1e-6)


def test_dataframes(data):
    pd = pytest.importorskip("pandas")
    X, targets = data
    names = [f"x{j}" for j in range(8)]
    frame = pd.DataFrame(X, columns=names).assign(y=targets[ARDRegressor], w=1.0)
    table = dd.from_pandas(frame, npartitions=4)
    found = ARDRegressor().fit_blocks(read_blocks(table, target="y", weight="w"))
    assert_allclose(found.coef_, ARDRegressor().fit(X, targets[ARDRegressor]).coef_, rtol=1e-9)
    assert found.feature_names_in_.tolist() == names
    assert_allclose(found.predict(table).compute(), found.predict(frame[names]))
    with pytest.raises(TypeError, match="'t' has type"):
        read_blocks(dd.from_pandas(frame.assign(t="text"), npartitions=2), target="y")


def test_missing_values_name_their_block(data):
    X, targets = data
    X = X.copy()
    X[2000, 3] = np.nan
    with pytest.raises(ValueError, match=r"X is NaN or infinite in block 2 .*row 600, column 3"):
        ARDRegressor().fit(lazy(X), lazy(targets[ARDRegressor]))


def test_what_is_refused(data):
    X, targets = data
    y = targets[ARDRegressor]
    with pytest.raises(TypeError, match="BLSRegressor needs its rows in memory"):
        BLSRegressor().fit(lazy(X), lazy(y))
    with pytest.raises(ValueError, match="X has 3000 rows and y has 2999"):
        ARDRegressor().fit(lazy(X), lazy(y[:-1]))
    with pytest.raises(ValueError, match="exposure is not supported"):
        SparsePoissonRegressor().fit(lazy(X), lazy(targets[SparsePoissonRegressor]), exposure=y)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="Dask's cluster is not installed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_cluster_gives_the_same_answer(client, data):
    X, targets = data
    for cls in (ARDRegressor, SparseLogisticRegression):
        y = targets[cls]
        found = cls(average=False).fit(lazy(X), lazy(y))
        assert_allclose(found.coef_, cls(average=False).fit(X, y).coef_, rtol=1e-8, atol=1e-10)


LOST = """
import os, signal, time
from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import distributed
import numpy as np

from sparsebayes import read_blocks
from sparsebayes.core.statistics import MomentsAbout


class Slow:
    def of(self, block):
        time.sleep(0.05)
        return MomentsAbout(np.zeros(9)).of(block)


if __name__ == "__main__":
    X = np.random.default_rng(0).standard_normal((3000, 8))
    blocks = read_blocks(da.from_array(X, chunks=(100, 8)), da.from_array(X[:, 0] ** 2, chunks=100))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        expected = blocks.reduce(Slow())
        pids = client.run(os.getpid)
        running = pool.submit(blocks.reduce, Slow())
        time.sleep(0.4)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        found = running.result()
        print("pids", len(pids), "difference", np.abs(found.scatter - expected.scatter).max())
"""


def test_a_lost_worker_changes_nothing(tmp_path):
    """One of two processes is killed in the middle of a pass. A script of its own: workers import its statistic."""
    pytest.importorskip("distributed", reason="Dask's cluster is not installed")
    (tmp_path / "lost.py").write_text(LOST)
    done = subprocess.run([sys.executable, "lost.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["pids", "2", "difference", "0.0"], done.stderr


def test_nothing_is_loaded_into_the_client(client):
    """400 MB of rows that exist on the workers only: the client stays small."""
    psutil = pytest.importorskip("psutil")
    X = da.random.default_rng(0).standard_normal((1_000_000, 50), chunks=(50_000, 50))
    y = X[:, 0] + da.random.default_rng(1).standard_normal(1_000_000, chunks=50_000)
    before = psutil.Process().memory_info().rss
    model = ARDRegressor(average=False).fit(X, y)
    assert 0 in model.active_
    assert psutil.Process().memory_info().rss - before < 100 * 2**20
