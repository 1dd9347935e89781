"""Draws for ArviZ: the right numbers under the right labels, for every estimator."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, RVMRegressor, SparseLogisticRegression
from sparsebayes.estimators import ESTIMATORS
from sparsebayes.inspection import to_datatree

pytest.importorskip("xarray", reason="to_datatree makes trees of xarray")


@pytest.fixture(scope="module")
def frame(make_data):
    X, y = make_data(80, 6, n_true=3)
    return pd.DataFrame(X, columns=list("abcdef")), y


def posterior(model, n_samples=2000, **options):
    return to_datatree(model, n_samples=n_samples, random_state=0, **options)["posterior"].to_dataset()


@pytest.mark.parametrize("k", range(len(ESTIMATORS)), ids=[cls.__name__ for cls in ESTIMATORS])
def test_the_mean_of_the_draws_is_the_mean_of_the_posterior(fitted, k):
    """Within five standard errors; of a kernel model, output by output.

    An averaged model keeps a thousand draws and repeats them: these are the ones that count.
    """
    model, _, _ = fitted[k]
    draws = posterior(model)
    n = min([8000, *(len(fit.draws) for fit in model._fits or [] if hasattr(fit, "draws"))])
    assert draws.sizes["chain"] * draws.sizes["draw"] == 8000
    if hasattr(model, "dual_coef_"):
        given = model.dual_coef_ if isinstance(model.dual_coef_, list) else [model.dual_coef_]
        names = [name for name in draws if name.startswith("dual_coef")]
        pairs = [(draws[name], mean) for name, mean in zip(names, given, strict=True)]
    else:
        pairs = [(draws["coef"], model.coef_)]
    for drawn, mean in [*pairs, (draws["intercept"], model.intercept_)]:
        error = drawn.std(("chain", "draw")).to_numpy() / np.sqrt(n)
        found = drawn.mean(("chain", "draw")).to_numpy()
        np.testing.assert_allclose(found, np.reshape(mean, found.shape), atol=5 * error.max() + 1e-12, rtol=1e-9)


def test_variables_are_labelled_by_features_classes_outputs_and_rows(frame):
    X, y = frame
    classes = np.array(["low", "mid", "top"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    one = posterior(ARDRegressor(average=False).fit(X, y))
    assert one["coef"].dims == ("chain", "draw", "feature")
    assert one["feature"].values.tolist() == list("abcdef")
    two = posterior(SparseLogisticRegression(average=False).fit(X, y > 0))
    assert two["coef"].dims == ("chain", "draw", "feature")
    assert two["intercept"].dims == ("chain", "draw")
    three = posterior(SparseLogisticRegression(average=False).fit(X, classes))
    assert three["coef"].dims == ("chain", "draw", "class", "feature")
    assert three["class"].values.tolist() == ["low", "mid", "top"]
    outputs = posterior(ARDRegressor(average=False).fit(X, np.column_stack([y, -y])))
    assert outputs["intercept"].dims == ("chain", "draw", "output")
    kernel = RVMRegressor(vectors="sparse").fit(X, y)
    np.testing.assert_array_equal(posterior(kernel)["vector"], kernel.relevance_indices_)
    several = RVMRegressor(vectors="sparse").fit(X, np.column_stack([y, y**2]))
    np.testing.assert_array_equal(posterior(several)["vector_1"], several.relevance_indices_[1])


def test_names_are_given_or_come_from_the_steps_of_a_pipeline(frame):
    X, y = frame
    steps = make_pipeline(StandardScaler(), ARDRegressor(average=False))
    assert posterior(steps.fit(X, y))["feature"].values.tolist() == list("abcdef")
    bare = ARDRegressor(average=False).fit(X.to_numpy(), y)
    assert posterior(bare)["feature"].values.tolist() == [f"x{j}" for j in range(6)]
    assert posterior(bare, feature_names=list("uvwxyz"))["feature"].values.tolist() == list("uvwxyz")


def test_the_share_of_draws_with_a_feature_is_its_inclusion_probability(frame):
    """The chains count every step, the draws are some of their steps: as far apart as the chains' error allows."""
    X, y = frame
    model = ARDRegressor().fit(X, y)
    share = (posterior(model)["coef"] != 0).mean(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(share, model.inclusion_probability_, atol=0.1)
    assert share[model.active_] == pytest.approx(1, abs=0.02)


def test_a_seed_repeats_the_draws_and_the_covariance_is_that_of_the_model(frame):
    X, y = frame
    model = ARDRegressor(average=False).fit(X, y)
    first, second = (posterior(model, n_samples=20_000)["coef"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    drawn = np.cov(first.to_numpy().reshape(-1, 6)[:, model.active_].T)
    scale = np.sqrt(np.diag(model.covariance_))
    np.testing.assert_allclose(
        drawn / np.outer(scale, scale),
        model.covariance_ / np.outer(scale, scale),
        atol=0.03,  # five times √(2/80,000), the standard error of a variance
    )


def test_what_cannot_be_drawn_from_is_refused(frame, monkeypatch):
    X, y = frame
    with pytest.raises(TypeError, match="LinearRegression has no sample_posterior"):
        to_datatree(LinearRegression().fit(X, y))
    model = ARDRegressor(average=False).fit(X, y)
    with pytest.raises(ValueError, match="n_samples=0"):
        to_datatree(model, n_samples=0)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r"pip install 'sparsebayes\[arviz\]'"):
        to_datatree(model)
