"""The code in the documents runs, and says what is true."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

ROOT = Path(__file__).parents[1]


def python_blocks(document):
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL)


def test_how_to_add_a_model_adds_a_model(rng):
    """The worked example of CONTRIBUTING ends where the evidence of the error contrasts is stationary."""
    (code,) = python_blocks("CONTRIBUTING.md")
    namespace = {}
    exec(code, namespace)
    X = rng.standard_normal((40, 6))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X @ rng.standard_normal(6) + 0.5 * rng.standard_normal(40)
    y = y / y.std()  # in standard units precisions need no conversion
    alpha, noise, converged = namespace["bayesian_ridge"](X, y)
    contrasts = null_space(np.ones((1, 40))).T

    def evidence(log_alpha, log_noise):
        covariance = np.exp(log_noise) * np.eye(40) + X @ X.T / np.exp(log_alpha)
        return multivariate_normal.logpdf(contrasts @ y, cov=contrasts @ covariance @ contrasts.T)

    at = np.log([alpha, noise])
    slope = approx_fprime(at, lambda x: evidence(*x), 1e-6)
    assert converged
    assert np.abs(slope).max() < 1e-3  # nats per e-fold, at tol=1e-10 nats; forward differences are good to 1e-5
    assert evidence(*at) > evidence(*(at + 0.1))


def test_the_ten_lines_of_the_readme_find_the_ten_features():
    code = python_blocks("README.md")[0]
    namespace = {}
    exec(code, namespace)
    np.testing.assert_array_equal(namespace["model"].active_, np.arange(10))


def test_a_model_goes_to_a_file_and_to_onnx_as_documented(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for code in python_blocks("docs/saving.md"):
        exec(code, namespace)
    assert {path.name for path in tmp_path.iterdir()} == {"model.skops", "model.onnx"}


def test_a_fit_is_watched_as_documented():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on")
    namespace = {}
    for code in python_blocks("docs/progress.md"):
        exec(code, namespace)
    assert namespace["model"].converged_
    stopped = namespace["RVMRegressor"]().set_callbacks(namespace["TimeLimit"](-1))
    with pytest.warns(ConvergenceWarning, match="a callback stopped the fit at step 1"):
        stopped.fit(namespace["X"], namespace["y"])


@pytest.mark.parametrize("document", ["docs/counts.md", "docs/outliers.md"])
def test_counts_and_outliers_are_as_documented(document):
    namespace = {}
    for code in python_blocks(document):
        exec(code, namespace)
    model = namespace["model"]
    np.testing.assert_array_equal(model.active_, [3, 7])
    if document == "docs/outliers.md":
        assert model.outlier_weight_[:20].max() < 0.1
