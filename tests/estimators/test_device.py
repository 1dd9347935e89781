"""Arrays of torch and CuPy, through scikit-learn's array-API dispatch.

Tensors of torch run the code of the graphics card on the processor; arrays of CuPy need a card.
"""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sparsebayes import (
    ARDRegressor,
    RVMRegressor,
    SparseLogisticRegression,
    SparsePoissonRegressor,
    VBLogisticRegression,
    read_blocks,
)
from sparsebayes.core import kernel_statistics
from sparsebayes.core.arrays import like, namespace_of, to_numpy
from sparsebayes.core.kernels import KERNELS
from sparsebayes.core.standard_units import StandardUnits
from sparsebayes.estimators import _elsewhere


@pytest.fixture(params=["torch", "cupy"])
def library(request):
    module = pytest.importorskip(request.param, reason=f"{request.param} is not installed (extra gpu)")
    if request.param == "cupy":
        try:
            module.cuda.runtime.getDeviceCount()
        except module.cuda.runtime.CUDARuntimeError:
            pytest.skip("CuPy finds no graphics card")
    return module


def kind(library):
    """The class of the library's arrays."""
    return type(library.zeros(1))


@pytest.fixture(autouse=True)
def dispatch(monkeypatch):
    """As if scikit-learn dispatched: it does so only where SciPy was told to before it was imported."""
    monkeypatch.setattr(_elsewhere, "get_config", lambda: {"array_api_dispatch": True})


@pytest.fixture
def data(rng):
    X = rng.standard_normal((800, 10)) + 3
    eta = X[:, 0] - X[:, 1]
    return X, {
        ARDRegressor: eta + rng.standard_normal(800),
        SparseLogisticRegression: (eta + rng.logistic(size=800) > 0).astype(int),
        SparsePoissonRegressor: rng.poisson(np.exp(0.4 * eta)).astype(float),
        VBLogisticRegression: (eta + rng.logistic(size=800) > 0).astype(int),
    }


@pytest.mark.parametrize("cls", [ARDRegressor, SparseLogisticRegression, SparsePoissonRegressor, VBLogisticRegression])
def test_the_model_is_that_of_numpy(cls, data, rng, library):
    X, targets = data
    y, weight = targets[cls], rng.integers(1, 3, 800).astype(float)
    single = {"tol": 1e-10, "max_iter": 20_000} if cls is VBLogisticRegression else {"average": False}
    expected = cls(**single).fit(X, y, sample_weight=weight)
    found = cls(**single).fit(library.asarray(X), library.asarray(y), sample_weight=library.asarray(weight))
    assert_allclose(found.coef_, expected.coef_, rtol=1e-8, atol=1e-10)
    assert_allclose(found.log_evidence_, expected.log_evidence_, rtol=1e-10)
    answer = found.predict(library.asarray(X))
    if hasattr(found, "predict_proba"):
        assert_array_equal(answer, found.predict(X))
        assert isinstance(found.predict_proba(library.asarray(X)), kind(library))
    else:
        assert isinstance(answer, kind(library))
        assert_allclose(to_numpy(answer), found.predict(X))


def test_only_small_matrices_come_back(data, monkeypatch, library):
    """Whatever is brought into the computer's memory is no longer than the columns, but for the targets."""
    from sparsebayes.core import statistics

    X, targets = data
    brought = []

    def watched(values):
        brought.append(tuple(values.shape))
        return to_numpy(values)

    monkeypatch.setattr(statistics, "to_numpy", watched)
    SparseLogisticRegression().fit(library.asarray(X), library.asarray(targets[SparseLogisticRegression]))
    assert not any(len(shape) == 2 and shape[0] == len(X) for shape in brought)


def test_without_dispatch_tensors_are_arrays(data, monkeypatch, library):
    X, targets = data
    monkeypatch.setattr(_elsewhere, "get_config", lambda: {"array_api_dispatch": False})
    if library.__name__ == "cupy":  # which never leaves the card unasked
        with pytest.raises(TypeError, match="get"):
            ARDRegressor(average=False).fit(library.asarray(X), targets[ARDRegressor])
        return
    model = ARDRegressor(average=False).fit(library.asarray(X), targets[ARDRegressor])
    assert_allclose(model.coef_, ARDRegressor(average=False).fit(X, targets[ARDRegressor]).coef_)


def test_conversions_keep_device_and_precision(library):
    tensor = library.zeros(3, dtype=library.float32)
    assert namespace_of(tensor) is library
    assert like(np.ones(2), tensor).dtype == library.float32
    assert namespace_of(np.ones(2)) is np
    assert_array_equal(to_numpy(like(np.ones(2), tensor)), np.ones(2))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_tensors_are_those_of_arrays(name, rng, library):
    X, Z = rng.standard_normal((30, 6)), rng.standard_normal((7, 6))
    found = KERNELS[name](library.asarray(X), library.asarray(Z))
    assert isinstance(found, kind(library))
    assert_allclose(to_numpy(found), KERNELS[name](X, Z), rtol=1e-12, atol=1e-14)


def test_standard_units_of_tensors_are_those_of_arrays(rng, library):
    X = rng.standard_normal((50, 3)) * [1, 1e3, 0] + 5
    X[7, 0] = 1e9  # beyond the fence
    units = StandardUnits.by_deviation(X, np.ones(50))
    assert_allclose(to_numpy(units(library.asarray(X))), units(X), rtol=1e-15)


@pytest.mark.parametrize("vectors", ["sparse", "all"])
def test_kernel_values_are_made_where_the_rows_are(vectors, rng, monkeypatch, library):
    """The model is that of blocks of rows, and no kernel value comes back."""
    X = rng.standard_normal((900, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(900)
    model = RVMRegressor(vectors=vectors, candidates=X[:40], gamma=0.3)
    expected = clone(model).fit_blocks(read_blocks(X, y))
    brought = []

    def watched(values):
        brought.append(tuple(np.shape(values)))
        return to_numpy(values)

    monkeypatch.setattr(kernel_statistics, "to_numpy", watched)
    found = clone(model).fit(library.asarray(X), library.asarray(y))
    assert found.noise_variance_ == pytest.approx(expected.noise_variance_, rel=1e-6)
    assert found.excess_variance_ == pytest.approx(expected.excess_variance_, rel=1e-6)
    # Kernel columns are nearly dependent: rounding may lead a search to another vector beside this one.
    assert_allclose(found.predict(X), expected.predict(X), atol=1e-3)
    # Of the sample come back the rows, as they are; of the columns only sums and one number for each row.
    assert {shape for shape in brought if len(shape) == 2} == {X.shape}


DISPATCHED = """
import sklearn, torch
from sparsebayes import ARDRegressor

X = torch.randn(300, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
with sklearn.config_context(array_api_dispatch=True):
    model = ARDRegressor(average=False).fit(X, 2 * X[:, 1] + torch.sin(40 * X[:, 3]))
    print(model.active_.tolist(), type(model.predict(X)).__name__, float(model.predict(X).shape[0]))
"""


def test_dispatch_as_scikit_learn_has_it():
    pytest.importorskip("torch", reason="torch is not installed (extra gpu)")
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", DISPATCHED], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["[1]", "Tensor", "300.0"], done.stderr
