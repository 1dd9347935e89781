"""The models that the command line knows: ours, and the plain ones that they are compared with."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sparsebayes.app.errors import DataError, UsageError

REGRESSION = ("regression",)
CLASSES = ("binary", "multiclass")
EVERY = (*REGRESSION, *CLASSES)
EVIDENCE_ROWS = 1000
"""Rows up to which a kernel's width is chosen by evidence; beyond, it is scikit-learn's "scale"."""
KERNEL_ROWS = 20_000
"""Rows up to which kernel models are fitted."""
WITHOUT_LIMIT = 10**12


@dataclass(frozen=True)
class Size:
    """What decides whether a model is affordable."""

    n_rows: int
    n_features: int
    task: str


@dataclass(frozen=True)
class Model:
    """A model by its name on the command line."""

    name: str
    title: str
    tasks: tuple[str, ...]
    make: Callable[[Size, int], Any]
    """The estimator for data of a size and a seed."""
    ours: bool = True
    scaled: bool = True
    """Whether features are brought to mean 0 and variance 1 first; models that do not care about units go without."""
    most_rows: int = WITHOUT_LIMIT
    """Rows up to which it is fitted when it is asked for by name."""
    compared_rows: int = WITHOUT_LIMIT
    """Rows up to which it takes part in a comparison that it was not asked to join."""
    most_numbers: int = WITHOUT_LIMIT
    """Rows × features up to which it takes part in one."""

    def too_slow(self, size: Size) -> bool:
        """Whether a comparison does better without it."""
        return size.n_rows > self.compared_rows or size.n_rows * size.n_features > self.most_numbers


def _ours(name: str, **parameters: Any) -> Callable[[Size, int], Any]:
    """An estimator of the library, which is imported when it is made; with the seed where it draws anything."""

    def make(size: Size, seed: int) -> Any:
        import sparsebayes

        made = getattr(sparsebayes, name)(**parameters)
        return made.set_params(random_state=seed) if "random_state" in made.get_params() else made

    return make


def _kernel(name: str) -> Callable[[Size, int], Any]:
    """A kernel machine, its width by evidence where that is affordable."""

    def make(size: Size, seed: int) -> Any:
        gamma = "evidence" if size.n_rows <= EVIDENCE_ROWS else "scale"
        return _ours(name, gamma=gamma)(size, seed)

    return make


def _rvm(size: Size, seed: int) -> Any:
    return _kernel("RVMRegressor" if size.task == "regression" else "RVMClassifier")(size, seed)


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


def _shares(size: Size, seed: int) -> Any:
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior")


def _known() -> Sequence[Model]:
    kernel: dict[str, Any] = {"most_rows": KERNEL_ROWS, "compared_rows": 5000}
    weighted: dict[str, Any] = {"most_rows": KERNEL_ROWS, "compared_rows": 500}
    plain: dict[str, Any] = {"ours": False}
    return (
        Model("ard", "ARD regression", REGRESSION, _ours("ARDRegressor"), scaled=False),
        Model("slr", "Sparse logistic regression", CLASSES, _ours("SparseLogisticRegression"), scaled=False),
        Model("vb", "Variational logistic", CLASSES, _ours("VBLogisticRegression"), most_numbers=10**7),
        Model("rvm", "Relevance vector machine", EVERY, _rvm, **kernel),
        Model("bls", "RVM with a Laplace prior", REGRESSION, _kernel("BLSRegressor"), **kernel),
        Model("pcvm", "Probabilistic vectors", CLASSES, _kernel("PCVMClassifier"), **kernel),
        Model("pfcvm", "PCVM, feature weights", CLASSES, _ours("PFCVMClassifier"), **weighted),
        Model("drvm", "RVM with feature weights", REGRESSION, _ours("DRVMRegressor"), **weighted),
        Model("ridge", "Ridge, by evidence", REGRESSION, _ridge, **plain),
        Model("lasso", "Lasso, cross-validated", REGRESSION, _lasso, most_numbers=10**8, **plain),
        Model("l2", "Logistic, L2, cross-validated", CLASSES, _logistic(l1=False), most_numbers=2 * 10**6, **plain),
        Model("l1", "Logistic, L1, cross-validated", CLASSES, _logistic(l1=True), most_numbers=10**6, **plain),
        Model("svm", "Support vector machine", EVERY, _svm, compared_rows=3000, **plain),
        Model("gp", "Gaussian process", EVERY, _gp, compared_rows=1500, **plain),
        # No feature can bring that much: what is left is the mean, with the spread around it.
        Model("mean", "The mean alone", REGRESSION, _ours("ARDRegressor", min_gain=1e9), scaled=False, **plain),
        Model("majority", "The class shares alone", CLASSES, _shares, scaled=False, **plain),
    )


MODELS = {model.name: model for model in _known()}
OURS = [model.name for model in MODELS.values() if model.ours]
LINEAR = {"regression": "ard", "binary": "slr", "multiclass": "slr"}
"""The model to begin with."""
CONSTANT = {"regression": "mean", "binary": "majority", "multiclass": "majority"}
"""What any model must beat."""
PLAIN = {"regression": "ridge", "binary": "l2", "multiclass": "l2"}
"""The baseline that `fit` shows."""


def suitable(task: str) -> list[Model]:
    """Models for a task, ours first."""
    return [model for model in MODELS.values() if task in model.tasks]


def named(name: str, task: str) -> Model:
    """One of our models by its name, if it has this task."""
    if name not in OURS:
        raise UsageError(f"--model {name} is not known: choose auto, {', '.join(OURS)}")
    fitting = {model.name: model for model in suitable(task) if model.ours}
    if name not in fitting:
        what = "regression" if task == "regression" else "classification"
        raise UsageError(f"--model {name} does no {what}, which is what the target asks for: use {', '.join(fitting)}")
    return fitting[name]


def check_size(model: Model, size: Size) -> None:
    """Refuse what would not end, with a way out."""
    if size.n_rows > model.most_rows:
        raise DataError(
            f"{model.title} ({model.name}) compares all pairs of rows, and {size.n_rows:,} rows are too many for that: "
            f"draw some with --sample {model.most_rows // 4}, or use --model {LINEAR[size.task]}"
        )


def settings(texts: Sequence[str]) -> dict[str, Any]:
    """`--set name=value` as parameters; a value is a number, true, false, null, or else a word."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--set '{text}' must be name=value, as in --set min_gain=0")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def pipeline(model: Model, size: Size, seed: int, impute: str = "", given: dict[str, Any] | None = None) -> Any:
    """The estimator with the steps that it needs before it."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    estimator = model.make(size, seed)
    unknown = sorted(set(given or {}) - set(estimator.get_params()))
    if unknown:
        known = ", ".join(sorted(estimator.get_params()))
        raise UsageError(f"--set: {type(estimator).__name__} has no parameter '{unknown[0]}', but {known}")
    estimator.set_params(**(given or {}))
    steps: list[tuple[str, Any]] = []
    if impute:
        from sklearn.impute import SimpleImputer

        steps.append(("impute", SimpleImputer(strategy=impute, keep_empty_features=True)))
    if model.scaled:
        steps.append(("scale", StandardScaler()))
    return Pipeline([*steps, ("model", estimator)])
