"""Every estimator of the register in its varieties, each fitted once for all tests that want it."""

import time
import warnings
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from forms import SHORT_CHAINS, can_average
from sklearn.base import is_classifier
from sklearn.utils._param_validation import StrOptions

from sparsebayes import ModelFileError, RVMRegressor, load, save
from sparsebayes.core.kernels import KERNELS
from sparsebayes.estimators import ESTIMATORS


@dataclass(frozen=True)
class Variety:
    """A class, its parameters, and the kind of target: y or Y (two outputs), two or three classes."""

    cls: type
    kind: str
    params: dict = field(default_factory=dict)

    def __str__(self):
        given = ",".join(f"{key}={value}" for key, value in self.params.items())
        return f"{self.cls.__name__}-{self.kind}-{given}"


def varieties(cls):
    """All that changes what a fitted model of a class holds, or what is computed from it."""
    choices = {
        key: sorted(set().union(*(option.options for option in options if isinstance(option, StrOptions))))
        for key, options in cls._parameter_constraints.items()
    }
    one, several = ("two", "three") if is_classifier(cls()) else ("y", "Y")
    if cls().__sklearn_tags__().target_tags.positive_only:
        one = several = "counts"
    yield Variety(cls, one)
    yield Variety(cls, several)
    yield Variety(cls, one, {"fit_intercept": False})
    for kernel in [kernel for kernel in (*KERNELS, "precomputed") if kernel in choices.get("kernel", [])]:
        yield Variety(cls, one, {"kernel": kernel})
        if "far_variance" in choices and kernel != "precomputed":
            yield Variety(cls, one, {"kernel": kernel, "far_variance": "augment"})
        if "softmax" in choices.get("multi_class", []):
            yield Variety(cls, several, {"kernel": kernel, "multi_class": "softmax"})
    # Weighing the features of three classes takes half a minute; once is enough.
    usual = one if is_classifier(cls()) and "n_restarts" in choices else several
    for key in ("intercept_prior", "prior", "proba", "multi_class", "inference", "truncation", "noise", "vectors"):
        yield from (Variety(cls, usual, {key: value}) for value in choices.get(key, []))
    if "standardize" in choices:
        yield Variety(cls, one, {"standardize": False})
    if "vectors" in choices:
        yield from (Variety(cls, one, {"vectors": "all", "kernel": kernel}) for kernel in ("poly", "laplacian"))
    if "feature_weights" in choices:
        yield from (Variety(cls, kind, {"feature_weights": True}) for kind in (one, several))
    if can_average(cls):
        yield from (Variety(cls, kind, {"average": False}) for kind in (one, several))
    if "min_gain" in choices:
        yield from (Variety(cls, usual, {"min_gain": value}) for value in (0.0, 1e6))


NEEDS = {("prior", "laplace"): {"inference": "coordinate"}, ("inference", "coordinate"): {"prior": "laplace"}}
"""What goes only together with something else."""

SHORT = {"n_restarts": 1, **SHORT_CHAINS}
"""What makes a search for feature weights, and chains over models, short: any end of them will do."""


def rows(seed, n=40):
    """Inputs, and an output that depends on two of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, 1.5 * X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n)


def target(y, kind):
    return {
        "y": lambda: y,
        "Y": lambda: np.column_stack([y, 3 - y**2]),
        "counts": lambda: np.rint(np.exp(y)),
        "two": lambda: y > 0,
        "three": lambda: np.array(["low", "middle", "high"])[np.digitize(y, [-0.8, 0.8])],
    }[kind]()


@cache
def fitted_model(name):
    variety = VARIETIES[name]
    X, y = rows(0)
    params = {key: value for key, value in SHORT.items() if key in variety.cls._parameter_constraints}
    params |= variety.params
    for given in variety.params.items():
        params |= NEEDS.get(given, {})
    if params.get("kernel") == "precomputed":
        X = KERNELS["rbf"](X, X, gamma=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fit has to say of these few rows is tested elsewhere
        return variety.cls(**params).fit(X, target(y, variety.kind))


VARIETIES = {str(variety): variety for cls in ESTIMATORS for variety in varieties(cls)}


@pytest.fixture(params=VARIETIES)
def fitted(request):
    """A fitted model of every variety; tests leave it as it is."""
    return fitted_model(request.param)


@pytest.fixture
def new_rows():
    """Inputs that a model has not seen: some near its own, some far, some beyond any fence, and the origin."""

    def make(model):
        X = np.concatenate([rows(1, n=25)[0], 4 * rows(2, n=10)[0], np.zeros((1, 4))])
        if "standardize" in model.get_params():
            X = np.concatenate([X, 100 * rows(3, n=3)[0]])
        precomputed = getattr(model, "kernel", None) == "precomputed"
        return KERNELS["rbf"](X, rows(0)[0], gamma=0.3) if precomputed else X

    return make


# --- forged files ---

SECONDS = 20
"""Far more than a small file takes to load, far less than some forged ones did."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


@pytest.fixture
def sentinel(tmp_path):
    """A file that comes into being if a forged model file has its way."""
    path = tmp_path / "sentinel"
    yield path
    assert not path.exists()


@pytest.fixture
def data(rng):
    X = rng.standard_normal((30, 3))
    return X, X[:, 0] + 0.1 * rng.standard_normal(30)


@pytest.fixture
def refused():
    """Assert that a file is refused, soon and with a short message."""

    def check(path, match):
        begin = time.perf_counter()
        with pytest.raises(ModelFileError, match=match) as caught:
            load(path)
        assert time.perf_counter() - begin < SECONDS
        assert len(str(caught.value)) < 1000

    return check


@pytest.fixture
def model(data):
    return RVMRegressor().fit(*data)


@pytest.fixture
def file(model, path):
    """A file of a fitted model."""
    save(model, path)
    return path
