"""Averages of the NumPy form: small fits make the same chains as the compiled form, whose frequencies are counted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from sparsebayes import ARDRegressor, SparseLogisticRegression, SparsePoissonRegressor
from sparsebayes.engine import compiled

MODELS = {
    "regression": ARDRegressor(average=True),
    "groups": ARDRegressor(average=True, groups=[0, 0, 1, 1, 2, 2]),
    "joint outputs": ARDRegressor(average=True, multi_output="joint"),
    "outliers": ARDRegressor(average=True, noise="outliers"),
    "classes": SparseLogisticRegression(average=True),
    "counts": SparsePoissonRegressor(average=True),
}


@pytest.mark.skipif(not compiled.COMPILED, reason="the compiled module is not there, or switched off")
@pytest.mark.parametrize("name", MODELS)
def test_both_forms_average_over_the_same_chains(name, monkeypatch):
    """Rounding alone differs: a flip is another one only if a random number hits its odds to many digits."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 6))
    eta = X[:, 0] - 0.4 * X[:, 2]
    targets = {"classes": eta > 0.3 * rng.standard_normal(30), "counts": rng.poisson(np.exp(eta))}
    y = targets.get(name, eta + 0.5 * rng.standard_normal(30))
    y = np.column_stack([y, eta + rng.standard_normal(30)]) if name == "joint outputs" else y
    found = []
    for is_compiled in (True, False):
        monkeypatch.setattr(compiled, "COMPILED", is_compiled)
        model = clone(MODELS[name]).set_params(n_chains=2, max_flips=120, random_state=0)
        found.append(model.fit(X, y))
    first, second = found
    p = np.asarray(first.inclusion_probability_)
    assert ((p > 0.01) & (p < 0.99)).any()  # chains that never move would agree, too
    for attribute in ("inclusion_probability_", "coef_", "coef_std_"):
        assert_allclose(getattr(second, attribute), getattr(first, attribute), rtol=1e-6, atol=1e-8)
