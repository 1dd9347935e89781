"""The models of the command line: those of the library, and baselines for comparison."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sparsebayes.app.errors import DataError, UsageError

REGRESSION = ("regression",)
CLASSES = ("binary", "multiclass")
EVERY = (*REGRESSION, *CLASSES)
KERNEL_ROWS = 20_000
"""Most rows of a kernel model."""
WITHOUT_LIMIT = 10**12


@dataclass(frozen=True)
class Size:
    """Rows, features and task, which decide whether a model is suitable and affordable."""

    n_rows: int
    n_features: int
    task: str
    counts: bool = False
    """Whether all targets are whole numbers, zero or more."""


@dataclass(frozen=True)
class Model:
    """A model by its name on the command line."""

    name: str
    title: str
    tasks: tuple[str, ...]
    make: Callable[[Size, int], Any]
    """Makes the estimator from the size of the data and a seed."""
    ours: bool = True
    scaled: bool = True
    """Whether features are standardised first. Models that do not depend on units need no scaling."""
    most_rows: int = WITHOUT_LIMIT
    """Most rows if the model is chosen by name."""
    compared_rows: int = WITHOUT_LIMIT
    """Most rows in a comparison of all models."""
    most_numbers: int = WITHOUT_LIMIT
    """Most values (rows × features) in a comparison of all models."""
    counts: bool = False
    """Whether it is for counts; a comparison of all models leaves it out for other numbers."""

    def too_slow(self, size: Size) -> bool:
        """Whether a comparison of all models leaves it out."""
        return size.n_rows > self.compared_rows or size.n_rows * size.n_features > self.most_numbers


def _ours(name: str, **parameters: Any) -> Callable[[Size, int], Any]:
    """An estimator of the library, imported on first use; it gets the seed if it has a random state."""

    def make(size: Size, seed: int) -> Any:
        import sparsebayes

        made = getattr(sparsebayes, name)(**parameters)
        return made.set_params(random_state=seed) if "random_state" in made.get_params() else made

    return make


def _rvm(size: Size, seed: int) -> Any:
    return _ours("RVMRegressor" if size.task == "regression" else "RVMClassifier")(size, seed)


def _ridge(size: Size, seed: int) -> Any:
    from sklearn.linear_model import BayesianRidge

    return BayesianRidge()


def _lasso(size: Size, seed: int) -> Any:
    from sklearn.linear_model import LassoCV

    return LassoCV(random_state=seed)


def _logistic(l1: bool) -> Callable[[Size, int], Any]:
    def make(size: Size, seed: int) -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV

        parameters: dict[str, Any] = {"max_iter": 1000}
        if l1:
            # scikit-learn 1.8 began to read the penalty off l1_ratio alone.
            by_ratio = LogisticRegression().l1_ratio is not None
            parameters |= {"l1_ratio": 1.0} if by_ratio else {"penalty": "l1"}
            parameters |= {"solver": "liblinear" if size.task == "binary" else "saga", "random_state": seed}
            parameters |= {"tol": 1e-4 if size.task == "binary" else 1e-2}
        grid = {"C": [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]}
        return GridSearchCV(LogisticRegression(**parameters), grid, scoring="neg_log_loss", cv=3)

    return make


def _svm(size: Size, seed: int) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    grid = {"C": [0.1, 1.0, 10.0, 100.0]}
    if size.task == "regression":
        return TransformedTargetRegressor(GridSearchCV(SVR(), grid, cv=3), transformer=StandardScaler())
    return GridSearchCV(SVC(), grid, cv=3)


def _gp(size: Size, seed: int) -> Any:
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    wide = (1e-2, 1e4)
    smooth = ConstantKernel(1.0, wide) * RBF(size.n_features**0.5, wide)
    if size.task == "regression":
        return GaussianProcessRegressor(smooth + WhiteKernel(0.5, (1e-6, 1e2)), normalize_y=True, random_state=seed)
    return GaussianProcessClassifier(smooth, random_state=seed)


def _boosting(size: Size, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if size.task == "regression" else HistGradientBoostingClassifier
    return kind(random_state=seed)


def _shares(size: Size, seed: int) -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior")


def _known() -> Sequence[Model]:
    kernel: dict[str, Any] = {"most_rows": KERNEL_ROWS, "compared_rows": 5000, "scaled": False}
    weighted: dict[str, Any] = kernel | {"compared_rows": 500}
    slow: dict[str, Any] = {"scaled": False, "most_numbers": 10**6}
    counting: dict[str, Any] = slow | {"counts": True}
    overdispersed: dict[str, Any] = {"distribution": "negative-binomial"}
    plain: dict[str, Any] = {"ours": False}
    return (
        Model("ard", "ARD regression", REGRESSION, _ours("ARDRegressor"), scaled=False),
        Model("robust", "ARD, gross errors in y", REGRESSION, _ours("ARDRegressor", noise="outliers"), **slow),
        Model("noisy", "ARD, noise depends on x", REGRESSION, _ours("ARDRegressor", noise="heteroscedastic"), **slow),
        Model("poisson", "Sparse Poisson regression", REGRESSION, _ours("SparsePoissonRegressor"), **counting),
        Model(
            "negbin",
            "Sparse negative binomial",
            REGRESSION,
            _ours("SparsePoissonRegressor", **overdispersed),
            **counting,
        ),
        Model("slr", "Sparse logistic regression", CLASSES, _ours("SparseLogisticRegression"), scaled=False),
        Model("vb", "Variational logistic", CLASSES, _ours("VBLogisticRegression"), most_numbers=10**7),
        Model("rvm", "Relevance vector machine", EVERY, _rvm, **kernel),
        Model("bls", "RVM with a Laplace prior", REGRESSION, _ours("BLSRegressor"), **kernel),
        Model("pcvm", "Probabilistic vectors", CLASSES, _ours("PCVMClassifier"), **kernel),
        Model("pfcvm", "PCVM, feature weights", CLASSES, _ours("PFCVMClassifier"), **weighted),
        Model("drvm", "RVM with feature weights", REGRESSION, _ours("DRVMRegressor"), **kernel),
        Model("ridge", "Bayesian ridge", REGRESSION, _ridge, **plain),
        Model("lasso", "Lasso, cross-validated", REGRESSION, _lasso, most_numbers=10**8, **plain),
        Model("l2", "Logistic, L2, cross-validated", CLASSES, _logistic(l1=False), most_numbers=2 * 10**6, **plain),
        Model("l1", "Logistic, L1, cross-validated", CLASSES, _logistic(l1=True), most_numbers=10**6, **plain),
        Model("svm", "Support vector machine", EVERY, _svm, compared_rows=3000, **plain),
        Model("gp", "Gaussian process", EVERY, _gp, compared_rows=1500, **plain),
        Model("boosting", "Gradient boosting", EVERY, _boosting, compared_rows=100_000, scaled=False, **plain),
        # No feature adds that much evidence, so only the mean and the noise variance are fitted.
        Model("mean", "The mean alone", REGRESSION, _ours("ARDRegressor", min_gain=1e9), scaled=False, **plain),
        Model("majority", "The class shares alone", CLASSES, _shares, scaled=False, **plain),
    )


MODELS = {model.name: model for model in _known()}
OURS = [model.name for model in MODELS.values() if model.ours]
LINEAR = {"regression": "ard", "binary": "slr", "multiclass": "slr"}
"""The linear model, which `auto` tries first."""
CONSTANT = {"regression": "mean", "binary": "majority", "multiclass": "majority"}
"""The model without features, which every other model should beat."""
BASELINES = {"regression": ("ridge", "boosting"), "binary": ("l2", "boosting"), "multiclass": ("l2", "boosting")}
"""The baselines in the comparison of `fit`: a linear and a non-linear one."""
CHALLENGERS = {"regression": ("rvm", "drvm"), "binary": ("rvm",), "multiclass": ("rvm",)}
"""The kernel models that `auto` compares with the linear one."""


def suitable(task: str) -> list[Model]:
    """Models for a task, those of the library first."""
    return [model for model in MODELS.values() if task in model.tasks]


def named(name: str, task: str) -> Model:
    """A model of the library by its name, for this task."""
    if name not in OURS:
        raise UsageError(f"unknown --model {name}: choose auto, {', '.join(OURS)}")
    fitting = {model.name: model for model in suitable(task) if model.ours}
    if name not in fitting:
        what, target = ("classification", "numeric") if task == "regression" else ("regression", "a class")
        raise UsageError(f"model {name} is for {what}, but the target is {target}: use {', '.join(fitting)}")
    return fitting[name]


def check_size(model: Model, size: Size) -> None:
    """Refuse a model that would take too long for this many rows."""
    if size.n_rows > model.most_rows:
        raise DataError(
            f"{model.title} ({model.name}) compares all pairs of rows; {size.n_rows:,} rows are too many: "
            f"use a sample (--sample {model.most_rows // 4}) or a linear model (--model {LINEAR[size.task]})"
        )


def settings(texts: Sequence[str]) -> dict[str, Any]:
    """Parameters from `--set name=value`. A value is a number, true, false, null, or text."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--set '{text}' must have the form name=value, as in --set average=false")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def pipeline(model: Model, size: Size, seed: int, impute: str = "", given: dict[str, Any] | None = None) -> Any:
    """The estimator with imputation and scaling before it, if necessary."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    estimator = model.make(size, seed)
    unknown = sorted(set(given or {}) - set(estimator.get_params()))
    if unknown:
        known = ", ".join(sorted(estimator.get_params()))
        raise UsageError(f"--set: {type(estimator).__name__} has no parameter '{unknown[0]}'; it has {known}")
    estimator.set_params(**(given or {}))
    if getattr(estimator, "noise", "gaussian") == "student":
        raise UsageError(
            "--set noise=student: the command line scores predictions by their standard deviation, which Student noise "
            "may not have. Use ARDRegressor(noise='student') in Python"
        )
    steps: list[tuple[str, Any]] = []
    if impute:
        from sklearn.impute import SimpleImputer

        steps.append(("impute", SimpleImputer(strategy=impute, keep_empty_features=True)))
    if model.scaled:
        steps.append(("scale", StandardScaler()))
    return Pipeline([*steps, ("model", estimator)])
