"""The built-in data sets: from scikit-learn, and simulated ones. None needs a network."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from sparsebayes.core.types import AnyArray, FloatArray

Columns = dict[str, AnyArray]
SEED = 0
"""Seed of the simulated data, which are always the same."""


@dataclass(frozen=True)
class Dataset:
    """A table with a target."""

    columns: Callable[[], Columns]
    target: str
    task: str
    n_rows: int
    n_features: int
    about: str

    def frame(self) -> pl.DataFrame:
        """The data set as a table."""
        return pl.DataFrame(self.columns())


DIABETES = (
    "age",
    "sex",
    "bmi",
    "blood pressure",
    "total cholesterol",
    "LDL cholesterol",
    "HDL cholesterol",
    "cholesterol / HDL",
    "log triglycerides",
    "blood sugar",
)


def _diabetes() -> Columns:
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, scaled=False)
    return _named(X, DIABETES) | {"progression": y}


def _bundled(name: str, target: str) -> Columns:
    """A data set of scikit-learn with named features and named classes."""
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{name}")()
    classes = np.array([str(label) for label in bunch.target_names])
    return _named(bunch.data, bunch.feature_names) | {target: classes[bunch.target]}


def _named(X: FloatArray, names: Any) -> Columns:
    return {str(name): column for name, column in zip(names, X.T, strict=True)}


def _numbered(X: FloatArray, letter: str = "x") -> Columns:
    width = len(str(X.shape[1]))
    return _named(X, [f"{letter}{j:0{width}d}" for j in range(1, X.shape[1] + 1)])


def _sinc() -> Columns:
    rng = np.random.default_rng(SEED)
    x = rng.uniform(-10, 10, size=100)
    return {"x": x, "y": np.sinc(x / np.pi) + 0.1 * rng.standard_normal(100)}


def _friedman(number: int) -> Columns:
    import sklearn.datasets

    make = getattr(sklearn.datasets, f"make_friedman{number}")
    more = {"n_features": 10} if number == 1 else {}
    noise = {1: 1.0, 2: 125.0, 3: 0.1}[number]  # standard deviations: signal three times the noise
    X, y = make(n_samples=240, noise=noise, random_state=SEED, **more)
    return _numbered(X) | {"y": y}


def _sparse(n: int, n_features: int) -> tuple[FloatArray, FloatArray]:
    """Standard normal features, and a weighted sum of the first ten."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n, n_features))
    return X, X[:, :10] @ rng.uniform(0.5, 1.5, 10)


def _sparse_linear() -> Columns:
    X, signal = _sparse(200, 500)
    return _numbered(X, "w") | {"y": signal + np.random.default_rng(SEED + 1).standard_normal(200)}


def _sparse_classes() -> Columns:
    X, signal = _sparse(400, 200)
    noisy = signal + np.random.default_rng(SEED + 1).logistic(size=400)
    return _numbered(X, "w") | {"y": np.where(noisy > 0, "yes", "no")}


def _moons() -> Columns:
    from sklearn.datasets import make_moons

    X, y = make_moons(200, noise=0.25, random_state=SEED)
    return _numbered(X) | {"moon": np.where(y, "lower", "upper")}


DATASETS = {
    "diabetes": Dataset(
        _diabetes, "progression", "regression", 442, 10, "progression of diabetes after a year, from ten measurements"
    ),
    "breast-cancer": Dataset(
        lambda: _bundled("breast_cancer", "diagnosis"),
        "diagnosis",
        "binary",
        569,
        30,
        "kind of tumour, from cell nuclei",
    ),
    "iris": Dataset(
        lambda: _bundled("iris", "species"), "species", "multiclass", 150, 4, "iris species, from four lengths"
    ),
    "wine": Dataset(
        lambda: _bundled("wine", "cultivar"),
        "cultivar",
        "multiclass",
        178,
        13,
        "wine cultivars, from chemical analysis",
    ),
    "digits": Dataset(
        lambda: _bundled("digits", "digit"), "digit", "multiclass", 1797, 64, "handwritten digits, 8 × 8 pixels"
    ),
    "sinc": Dataset(_sinc, "y", "regression", 100, 1, "sin(x)/x with noise 0.1: one input, nonlinear"),
    "friedman1": Dataset(lambda: _friedman(1), "y", "regression", 240, 10, "nonlinear; five of ten inputs matter"),
    "friedman2": Dataset(
        lambda: _friedman(2), "y", "regression", 240, 4, "impedance of a circuit, from four components"
    ),
    "friedman3": Dataset(
        lambda: _friedman(3), "y", "regression", 240, 4, "phase of the circuit, from the same components"
    ),
    "sparse-linear": Dataset(_sparse_linear, "y", "regression", 200, 500, "linear; ten of 500 inputs matter"),
    "sparse-classes": Dataset(_sparse_classes, "y", "binary", 400, 200, "linear log-odds; ten of 200 inputs matter"),
    "moons": Dataset(_moons, "moon", "binary", 200, 2, "two overlapping half moons: nonlinear"),
}
"""Data sets by their names on the command line."""
