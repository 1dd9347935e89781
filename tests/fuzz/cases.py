"""Cases of the campaign against the estimators: drawn by hypothesis, run by `outcome`."""

import time
import warnings
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils._param_validation import Interval, StrOptions

from sparsebayes import StabilitySelector
from sparsebayes.estimators import ESTIMATORS

SECONDS = 60.0
"""Processor time after which a case counts as a failure."""
QUICK = {"max_iter": 30, "n_chains": 3, "max_flips": 60, "n_restarts": 2}
"""Largest values of parameters that only make a fit longer."""
LEFT_ALONE = {"verbose", "n_jobs", "random_state", "groups", "candidates", "init", "warm_start"}
"""Parameters that are not drawn: those that do not change the answer, and those whose shape must fit the data."""
TOLD = ("the noise variance reached its floor", "the weights add up to less")
"""Warnings with a remedy, which are no failures."""


@dataclass(frozen=True)
class Case:
    """A fit: what the data look like, the estimator, and its parameters."""

    estimator: str
    parameters: dict[str, Any]
    n: int
    d: int
    rows: str
    target: str
    weights: str
    x_power: int
    y_power: int
    way: str
    """How the estimator is used: "fit", "stability", "precomputed", "callable" or "partial"."""
    dtype: str
    seed: int
    classes: int = field(default=2)


ROWS = ["normal", "rank one", "ties", "constant", "copies", "sparse", "outlier", "columns"]
POWERS = st.one_of(st.just(0), st.integers(-8, 8), st.sampled_from([-300, -160, -150, -100, 100, 150, 155, 300]))
NUMBERS = st.one_of(st.floats(1e-3, 1e3), st.sampled_from([1e-300, 1e-12, 1e-6, 0.5, 1.0, 2.0, 1e6, 1e12, 1e300]))


def _value(name: str, options: list[Any]) -> st.SearchStrategy[Any]:
    """Values that a parameter may have."""
    found: list[st.SearchStrategy[Any]] = []
    for option in options:
        if isinstance(option, StrOptions):
            found.append(st.sampled_from(sorted(option.options - {"precomputed"})))
        elif isinstance(option, Interval) and option.type is Integral:
            found.append(st.integers(max(int(option.left), 1), QUICK.get(name, 5)))
        elif isinstance(option, Interval):
            low = option.left if np.isfinite(option.left or -np.inf) else None
            found.append(NUMBERS.filter(lambda x, o=option, low=low: x in o if low is not None else True))
        elif option == "boolean":
            found.append(st.booleans())
        elif option is None:
            found.append(st.none())
    return st.one_of(found) if found else st.nothing()


def _parameters(cls: type) -> st.SearchStrategy[dict[str, Any]]:
    drawn = {}
    for name, options in cls._parameter_constraints.items():
        if name in LEFT_ALONE:
            continue
        value = _value(name, options)
        if not value.is_empty:
            drawn[name] = value
    always = {name: st.integers(1, most) for name, most in QUICK.items() if name in cls._parameter_constraints}
    rest = {name: value for name, value in drawn.items() if name not in always}
    return st.fixed_dictionaries(always, optional=rest)


@st.composite
def cases(draw: Any) -> Case:
    """Any estimator with any parameters on any data."""
    cls = draw(st.sampled_from(ESTIMATORS))
    ways = ["fit"] * 6
    names = cls._parameter_constraints
    ways += ["precomputed", "callable"] * ("kernel" in names) + ["stability"] * ("average" in names)
    ways += ["partial"] * hasattr(cls, "partial_fit")
    parameters = draw(_parameters(cls))
    return Case(
        estimator=cls.__name__,
        # Three parameters at once are enough to find what two do to each other, and few refuse each other.
        parameters={key: parameters[key] for key in _few(draw, parameters)},
        n=draw(st.integers(2, 30)),
        d=draw(st.sampled_from([1, 2, 3, 5, 12, 40])),
        rows=draw(st.sampled_from(ROWS)),
        target=draw(st.sampled_from(["linear", "noise", "constant", "separable", "ties"])),
        weights=draw(st.sampled_from(["none"] * 4 + ["zeros", "integers", "tiny", "huge", "mixed", "shares"])),
        x_power=draw(POWERS),
        y_power=draw(POWERS),
        way=draw(st.sampled_from(ways)),
        dtype=draw(st.sampled_from(["float64", "float64", "float32", "int64", "fortran"])),
        seed=draw(st.integers(0, 10**6)),
        classes=draw(st.sampled_from([2, 2, 3])),
    )


def _few(draw: Any, parameters: dict[str, Any]) -> list[str]:
    always = [name for name in parameters if name in QUICK]
    others = sorted(set(parameters) - set(always))
    chosen = draw(st.lists(st.sampled_from(others), max_size=3, unique=True)) if others else []
    return always + chosen


# --- data ---


def _inputs(case: Case, rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((case.n, case.d))
    if case.rows == "rank one":
        X = np.outer(X[:, 0], rng.standard_normal(case.d))
    elif case.rows == "ties":
        X = np.round(X)
    elif case.rows == "constant":
        X[:, :: 2 if case.d > 1 else 1] = 3.0
    elif case.rows == "copies":
        X = X[rng.integers(0, max(case.n // 3, 1), case.n)]
    elif case.rows == "sparse":
        X *= rng.random(X.shape) < 0.2
    elif case.rows == "outlier":
        X[0, 0] = 1e6
    elif case.rows == "columns":
        X *= 10.0 ** rng.integers(-6, 7, case.d)
    with np.errstate(all="ignore"):
        X = X * 10.0**case.x_power
    if case.dtype == "float32":
        X = np.clip(X, -1e30, 1e30)  # scikit-learn adds up the values
        return X.astype(np.float32)
    if case.dtype == "int64":
        return np.clip(np.round(10 * X), -(2.0**40), 2.0**40).astype(np.int64)
    return np.asfortranarray(X) if case.dtype == "fortran" else X


def _targets(case: Case, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    size = np.abs(X[:, 0].astype(np.float64)).max()
    y = X[:, 0].astype(np.float64) / size if size > 0 else np.zeros(case.n)
    if case.target in ("linear", "ties"):
        y = 2 * y + 0.3 * rng.standard_normal(case.n)
    elif case.target == "noise":
        y = rng.standard_normal(case.n)
    elif case.target == "constant":
        y = np.full(case.n, 2.5)
    if case.target == "ties":
        y = np.round(y)
    cls = _class(case)
    if is_classifier(cls()):
        edges = np.quantile(y, np.arange(1, case.classes) / case.classes)
        return np.array(["a", "b", "c"])[np.digitize(y, edges)]
    if "Poisson" in case.estimator:
        return np.rint(np.exp(np.clip(y, -5, 5)))
    with np.errstate(all="ignore"):
        return y * 10.0**case.y_power


def _weight(case: Case, rng: np.random.Generator) -> np.ndarray | None:
    n = case.n
    made = {
        "none": lambda: None,
        "zeros": lambda: (rng.random(n) < 0.7).astype(float),
        "integers": lambda: rng.integers(0, 4, n),
        "tiny": lambda: np.full(n, 1e-300),
        "huge": lambda: np.full(n, 1e300),
        "mixed": lambda: 10.0 ** rng.integers(-12, 6, n),
        "shares": lambda: np.full(n, 1 / n),
    }
    return made[case.weights]()


def _class(case: Case) -> Any:
    return next(cls for cls in ESTIMATORS if cls.__name__ == case.estimator)


def a_kernel(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """A kernel of the user's own."""
    with np.errstate(over="ignore"):
        return rbf_kernel(X, Z, gamma=0.3)


# --- running ---


def outcome(case: Case) -> str:
    """ "fitted" or "refused"; anything else is an AssertionError, or whatever exception came out."""
    rng = np.random.default_rng(case.seed)
    X = _inputs(case, rng)
    y, weight = _targets(case, X, rng), _weight(case, rng)
    model = _class(case)(**case.parameters)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = _run(case, model, X, y, weight)
        except (ValueError, FloatingPointError) as error:
            if isinstance(error, np.linalg.LinAlgError) or not str(error).strip():
                raise
            if isinstance(error, FloatingPointError) and _moderate(case):
                raise
            return "refused"
    seconds = time.process_time() - start
    assert seconds < SECONDS, f"took {seconds:.0f} s"
    if _moderate(case):
        _check_warnings([item for item in caught if not issubclass(item.category, ConvergenceWarning)])
    for name, values in found.items():
        finite = ~np.isnan(values) if _may_overflow(case) else np.isfinite(values)
        assert finite.all(), f"{name} is not finite"
    if "proba" in found:
        np.testing.assert_allclose(found["proba"].sum(axis=1), 1, atol=1e-9)
    if "std" in found:
        assert (found["std"] >= 0).all()
    return "fitted"


def _moderate(case: Case) -> bool:
    """Whether sizes and parameters are such that a fit must succeed, without a numerical warning."""
    values = [value for value in case.parameters.values() if isinstance(value, float) and value > 0]
    usual = all(1e-12 <= value <= 1e12 for value in values)
    usual &= case.parameters.get("degree", 3.0) in (1.0, 2.0, 3.0)  # other powers overflow, or have no real value
    # The prior of VBLogisticRegression is in the units of the features; rates of counts overflow sooner than the rest.
    far = 6 if case.estimator == "VBLogisticRegression" else 100
    size = 6 if case.parameters.keys() & {"b", "d", "noise_variance"} else 100  # these are in units of y²
    wild = ("tiny", "huge", "mixed") if "Poisson" in case.estimator else ("tiny", "huge")
    return usual and abs(case.x_power) <= far and abs(case.y_power) <= size and case.weights not in wild


def _may_overflow(case: Case) -> bool:
    """Whether a rate of counts may be infinite: in wild cases, and far away from all rows that have weight."""
    return "Poisson" in case.estimator and (not _moderate(case) or (case.rows, case.weights) == ("outlier", "zeros"))


def _check_warnings(caught: list[Any]) -> None:
    for item in caught:
        told = str(item.message)
        if issubclass(item.category, RuntimeWarning) and not told.startswith(TOLD):
            raise AssertionError(f"RuntimeWarning: {told} ({item.filename.rpartition('/')[2]}:{item.lineno})")


def _run(case: Case, model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    if case.way == "stability":
        selector = StabilitySelector(model, n_resamples=2, random_state=0).fit(X, y)
        return {"frequency": selector.selection_frequency_}
    if case.way == "partial":
        half = max(case.n // 2, 1)
        model.partial_fit(X[:half], y[:half], classes=np.unique(y))
        model.partial_fit(X[half:], y[half:])
        return {"proba": model.predict_proba(X)}
    new = X
    if case.way == "precomputed":
        model.set_params(kernel="precomputed")
        X = new = rbf_kernel(X.astype(np.float64), gamma=0.3)
    elif case.way == "callable":
        model.set_params(kernel=a_kernel)
    model.fit(X, y, sample_weight=weight)
    if is_classifier(model):
        return {"proba": model.predict_proba(new)}
    if "Poisson" in case.estimator:
        return {"mean": model.predict(new)}
    mean, std = model.predict(new, return_std=True)
    ends = model.predict_interval(new)
    student = model.get_params().get("noise") == "student"  # whose variance may be infinite
    return {"mean": mean, "ends": ends} | ({} if student else {"std": std})
