"""What all tests share: one BLAS thread per worker (two compete for the same cores), and small data."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checks import check_name, checks_of
from counting import counts, is_counting
from forms import SHORT_CHAINS, averages, can_average
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils._param_validation import StrOptions
from threadpoolctl import threadpool_limits

import sparsebayes
from sparsebayes import RVMClassifier, SparseLogisticRegression
from sparsebayes.engine import compiled
from sparsebayes.estimators import ESTIMATORS

_limits = threadpool_limits(1)
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # the same for the programs that tests start
REFERENCE = Path(__file__).parent / "reference"

OPTIONS: tuple[dict[str, Any], ...] = ({}, {"min_gain": 0.0}, {"intercept_prior": "ard"}, {"fit_intercept": False})
"""Settings that every solver is tried with, where a class has them."""


TOO_SLOW = {"RVMClassifier": {"em"}}
"""EM with a weight for each of the 300 rows of some checks takes a minute a check; its own tests see to it."""


def variants(cls: type[BaseEstimator]) -> Iterator[BaseEstimator]:
    """The defaults of a class, and each of its solvers with each of the options.

    Where features have weights a fit takes long: then from one start only, and each solver once. Of a class that can
    average, the averaged form with short chains, and each solver with the single model that it looks for. "em" differs
    from "fixed-point" by one rule, and takes longer: it has no options of its own.
    """
    parameters = cls._parameter_constraints
    if "n_restarts" in parameters:
        can_do_without = "feature_weights" in parameters
        yield cls(n_restarts=1, **({"feature_weights": True} if can_do_without else {}))
        if not can_do_without:
            others = solvers(cls) - {cls().get_params().get("solver")}
            yield from (cls(solver=solver, n_restarts=1) for solver in sorted(others))
            return
    single = {}
    if can_average(cls):
        single = {"average": False}
        yield cls(**SHORT_CHAINS)
        if has_gaussian_noise(cls()):  # some of the checks need an intercept for classes and counts
            yield cls(fit_intercept=False, **SHORT_CHAINS)
    yield cls(**single)
    for solver, options in product(sorted(solvers(cls)), OPTIONS):
        if options.keys() <= parameters.keys() and (solver != "em" or not options):
            yield cls(solver=solver, **single, **options)
    if "multi_output" in parameters:
        yield cls(multi_output="joint", **single)
    if "noise" in parameters:
        yield from (cls(noise="student", **options) for options in OPTIONS)
        yield cls(noise="outliers", **single)
        yield cls(noise="heteroscedastic", **single)
    if is_counting(cls()):  # without an intercept the rate at the origin is one, which suits no data of the checks
        yield cls(min_gain=0.0)


def solvers(cls: type[BaseEstimator]) -> set[str]:
    """Values of `solver`, where a class has it."""
    return words(cls, "solver") - {"auto"} - TOO_SLOW.get(cls.__name__, set())


def words(cls: type[BaseEstimator], parameter: str) -> set[str]:
    """Words that a parameter of a class can be; none where it has no such parameter."""
    names = [option for option in cls._parameter_constraints.get(parameter, []) if isinstance(option, StrOptions)]
    return set().union(*(option.options for option in names))


def is_linear(model: BaseEstimator) -> bool:
    """Whether the columns are the features themselves, of which the model keeps some."""
    return hasattr(model, "get_support") and "kernel" not in model.get_params()


def has_gaussian_noise(model: BaseEstimator) -> bool:
    """Whether it regresses a target in any unit with Gaussian noise."""
    return is_regressor(model) and not is_counting(model) and model.get_params().get("noise", "gaussian") == "gaussian"


def has_flat_intercept(model: BaseEstimator) -> bool:
    """Whether it has an intercept that is integrated out."""
    return model.get_params().get("intercept_prior", "flat") == "flat" and model.fit_intercept


def has_kernel(model: BaseEstimator) -> bool:
    """Whether the columns are functions of the rows, of one width for all features."""
    return "gamma" in model.get_params() and not model.get_params().get("feature_weights", False)


def name(model: BaseEstimator) -> str:
    changed = [
        f"{key}={value}" for key, value in model.get_params().items() if value != type(model)().get_params()[key]
    ]
    return f"{type(model).__name__}({','.join(changed)})"


VARIANTS = list({name(model): model for cls in ESTIMATORS for model in variants(cls)}.values())
SELECTORS = [model for model in VARIANTS if is_linear(model)]
REGRESSORS = [model for model in SELECTORS if has_gaussian_noise(model)]
ONE_MODEL = [model for model in REGRESSORS if not averages(model)]
KERNEL_REGRESSORS = [model for model in VARIANTS if is_regressor(model) and has_kernel(model)]
DEFAULTS = [cls() for cls in ESTIMATORS]
BOTH_FORMS = DEFAULTS + [cls(average=False) for cls in ESTIMATORS if can_average(cls)]


def quick(cls: type[BaseEstimator], **options: Any) -> BaseEstimator:
    """Defaults, from one start or with short chains, and always the same random numbers."""
    once = {"n_restarts": 1, "random_state": 0, **SHORT_CHAINS}
    return cls(**{key: value for key, value in once.items() if key in cls._parameter_constraints}, **options)


EVERY = [
    *(quick(cls) for cls in ESTIMATORS),
    *(quick(cls, average=False) for cls in ESTIMATORS if can_average(cls)),
    quick(SparseLogisticRegression, min_gain=0),
    quick(SparseLogisticRegression, inference="variational"),
    quick(RVMClassifier, inference="variational"),
    *(quick(cls, vectors=vectors) for cls in ESTIMATORS for vectors in sorted(words(cls, "vectors") - {"auto"})),
]
"""Each registered estimator in both forms, and the ways of inference and the models that a default may not take."""
CASES = {
    "estimator": VARIANTS,
    "selector": SELECTORS,
    "regressor": REGRESSORS,
    "one_model": ONE_MODEL,
    "averaged": [model for model in REGRESSORS if averages(model)],
    "kernel_regressor": KERNEL_REGRESSORS,
    "priced": [model for model in REGRESSORS if model.get_params().get("min_gain") == "auto"],
    "textbook": [model for model in REGRESSORS if model.get_params().get("min_gain") == 0],
    "flat": [model for model in REGRESSORS if has_flat_intercept(model)],
    "one_flat_model": [model for model in ONE_MODEL if has_flat_intercept(model)],
    "every": EVERY,
    "every_regressor": [model for model in EVERY if is_regressor(model)],
    "every_classifier": [model for model in EVERY if is_classifier(model)],
    "default": DEFAULTS,
    "quick_default": [quick(cls) for cls in ESTIMATORS],
    "default_selector": [model for model in BOTH_FORMS if is_linear(model)],
    "any_regressor": [model for model in BOTH_FORMS if is_regressor(model)],
    "default_regressor": [model for model in BOTH_FORMS if has_gaussian_noise(model) and is_linear(model)],
}
"""Arguments of a test that stand for every estimator of a kind; whatever joins ESTIMATORS is tested by asking for them.

selector: models whose columns are the features, of which they keep some; regressor: those with Gaussian noise, of
which averaged are averages over models, and one_model are not.
kernel_regressor: regressors whose columns are kernel functions of the rows, with one width for all features.
priced, textbook: regressors with the default charge for a feature, and none.
quick_default: the defaults, with few starts or short chains; every: these and other forms, also in a quick form;
every_regressor, every_classifier: those that regress or classify.
flat: regressors whose intercept is integrated out, so that nothing depends on where the data lie; one_flat_model: those
that do not average.
"""


def needs_other_random_numbers(model: BaseEstimator, check: Any) -> bool:
    """Whether a check compares averages over chains that draw one number per row, on other numbers of rows.

    Repeated rows and weights agree within the Monte Carlo error (tests/estimators/test_averaging.py).
    """
    name = check_name(check)
    # EM ends where a step gains less than `tol`, up to 4e-7 apart on sparse rows, whose sums are rounded otherwise.
    crawls = model.get_params().get("solver") == "em" and name.endswith("on_sparse_data")
    return (averages(model) or crawls) and name.startswith("check_sample_weight_equivalence_on_")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for argument in CASES.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(argument, CASES[argument], ids=name)
    if "estimator_check" in metafunc.fixturenames:
        checks = [(model, check) for model in VARIANTS for check in checks_of(model)]
        checks = [(model, check) for model, check in checks if not needs_other_random_numbers(model, check)]
        ids = [f"{name(model)}-{check_name(check)}" for model, check in checks]
        metafunc.parametrize("estimator_check", [partial(check, model) for model, check in checks], ids=ids)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Frequencies are counted in the compiled form only; that both forms agree, flip by flip, tests/engine says."""
    if compiled.COMPILED:
        return
    for item in items:
        if item.get_closest_marker("frequencies"):
            item.add_marker(
                pytest.mark.skip(reason="many fits or long chains, which take long without the compiled engine")
            )


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests share the parametrised estimators, so they must clone what they fit; this catches the one that forgot."""
    yield
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    for argument in CASES.keys() & params.keys():
        assert not hasattr(params[argument], "n_features_in_"), "the test fitted a shared estimator"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260)


@pytest.fixture(scope="session")
def make_data():
    """Sparse linear data: the first columns matter, with weights of size 1 to 2 and alternating sign."""

    def make(n=60, d=12, n_true=3, noise=0.5, seed=0, offset=0.0):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d))
        weight = np.linspace(2, 1, n_true) * (-1) ** np.arange(n_true)
        return X, X[:, :n_true] @ weight + offset + noise * rng.standard_normal(n)

    return make


@pytest.fixture(scope="session")
def data_for(make_data):
    """Data that an estimator can be fitted to: numbers or counts to regress, or labels to tell apart."""

    def make(model, **kwargs):
        X, y = make_data(**kwargs)
        if is_counting(model):
            return X, counts(y)
        return X, np.where(y > np.median(y), "high", "low") if is_classifier(model) else y

    return make


@pytest.fixture
def on_terminal():
    """Run a program whose standard error is a terminal: what it wrote there, and on standard output."""
    pty = pytest.importorskip("pty", reason="there are pseudo-terminals on POSIX only")

    def run(program, *arguments):
        ours, theirs = pty.openpty()
        environment = os.environ | {"PYTHONPATH": str(Path(sparsebayes.__file__).parents[1])}
        environment |= {"COLUMNS": "150", "TERM": "xterm"}
        process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment
        )
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 65536):
                seen += chunk
        except OSError:  # the end, on Linux
            pass
        finally:
            os.close(ours)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0, seen
        return seen.decode(), out.decode()

    return run


LOG_PROBLEMS = ("log_n200_d10", "log_iris_vv", "log_n60_d300", "log_nearsep_n80_d5")


@pytest.fixture(params=LOG_PROBLEMS)
def log_problem(request: pytest.FixtureRequest) -> str:
    """Each of the two-class problems that the original programs were run on."""
    return request.param


@pytest.fixture(scope="session")
def log_data():
    """Inputs and classes (0 or 1) of such a problem."""

    def load(problem, part="train"):
        table = np.loadtxt(REFERENCE / f"{problem}_{part}.csv", delimiter=",")
        return table[:, :-1], table[:, -1]

    return load


@pytest.fixture(scope="session")
def recorded():
    """What an original program answered on a problem."""
    return lambda problem, program: json.loads((REFERENCE / f"{problem}__{program}.json").read_text())
