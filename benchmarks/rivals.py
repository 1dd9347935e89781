"""The methods of the peer table, for each kind of data: functions (X, y) → `Answer`, ours first.

Rivals get standardised columns, and what their users would choose: parameters by cross-validation, or by likelihood
where that is their way. Kernel widths of relevance vector machines of others are "scale", and by 5-fold
cross-validation in a second entry, because these packages do not choose a width.
"""

from functools import partial

import numpy as np
from contenders import CLASSIFIERS, REGRESSORS, Answer, Units, selector
from samplers import millipede, susie
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LassoCV, LogisticRegressionCV, MultiTaskLassoCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC, SVR

from sparsebayes import (
    ARDRegressor,
    DRVMRegressor,
    PCVMClassifier,
    PFCVMClassifier,
    RVMClassifier,
    RVMRegressor,
    SparseLogisticRegression,
)

WIDTHS = np.array([0.03, 0.1, 0.3, 1.0, 3.0])
"""Of cross-validated kernels, over the number of features; inputs have standard deviation one."""
TREES = {"n_jobs": 1, "verbose": -1, "random_state": 0}


# --- Answers of fitted models ---


def features(model):
    """Indices of the features that it claims; None where it claims nothing."""
    return model.get_support(indices=True) if hasattr(model, "get_support") else None


def our_vectors(model):
    """Rows that predictions of a kernel model need; each counts once, however many classes use it."""
    kept = getattr(model, "relevance_indices_", None)
    return None if kept is None else len(np.unique(np.concatenate(kept) if isinstance(kept, list) else kept))


def n_vectors(model):
    """The same for models of others; None where the model has none."""
    model = getattr(model, "best_estimator_", model)
    model = model[-1] if hasattr(model, "steps") else model
    model = getattr(model, "best_estimator_", model)
    for name in ("relevance_vectors_", "relevance_", "support_", "X_train_"):
        if getattr(model, name, None) is not None:
            return len(getattr(model, name))
    if hasattr(model, "estimators_"):  # one machine for each class against the rest
        return sum(len(each.relevance_) for each in model.estimators_)
    inner = getattr(model, "base_estimator_", None)
    return len(inner.X_train_) if hasattr(inner, "X_train_") else None


def ours(make):
    """A model of this project; it standardises by itself."""

    def fit(X, y):
        model = make().fit(X, y)
        predict = model.predict_proba if hasattr(model, "predict_proba") else model.predict
        return Answer(predict, features(model), n_vectors=our_vectors(model))

    return fit


def scaled(make):
    """A model of others on standardised inputs, and targets where they are not classes."""

    def fit(X, y):
        if y.dtype.kind == "i":
            model = make_pipeline(StandardScaler(), make(X)).fit(X, y)
            return Answer(model.predict_proba, n_vectors=n_vectors(model))
        units, model = Units(X, y), make(X)
        units.fit(model, X, y)  # sklearn-rvm returns None
        return Answer(units.back(model.predict), n_vectors=n_vectors(model))

    return fit


# --- Curves and boundaries: kernel methods ---


def by_width(model, d, **others):
    """5-fold cross-validation of a kernel's width, and of other parameters."""
    return GridSearchCV(model, {"gamma": list(WIDTHS / d)} | others, cv=5)


def fast_machine(name, tuned=False):
    """fastrvm: `RVR` or `RVC`."""

    def make(X):
        import fastrvm

        model = getattr(fastrvm, name)(fit_intercept=True)
        return by_width(model, X.shape[1]) if tuned else model

    return scaled(make)


def em_machine(name):
    """sklearn-rvm: `EMRVR` or `EMRVC`, whose default width is no longer known to scikit-learn."""

    def make(X):
        import sklearn_rvm

        return getattr(sklearn_rvm, name)(kernel="rbf", gamma=1 / X.shape[1])

    return scaled(make)


def process(each_input):
    """scikit-learn's Gaussian process, one width or one for each input."""

    def make(X):
        width = np.full(X.shape[1], np.sqrt(X.shape[1])) if each_input else np.sqrt(X.shape[1])
        kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(width, (1e-2, 1e3)) + WhiteKernel(0.1, (1e-6, 1e1))
        return GaussianProcessRegressor(kernel, random_state=0)

    return scaled(make)


def class_process(X):
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.sqrt(X.shape[1]), (1e-2, 1e3))
    return GaussianProcessClassifier(kernel, random_state=0)


class TorchProcess:
    """gpytorch's exact Gaussian process with a width for each input: 100 steps of Adam, as in its tutorial."""

    def fit(self, X, y):
        import gpytorch
        import torch

        class Model(gpytorch.models.ExactGP):
            def __init__(self, X, y, likelihood):
                super().__init__(X, y, likelihood)
                self.mean = gpytorch.means.ConstantMean()
                self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))

            def forward(self, X):
                return gpytorch.distributions.MultivariateNormal(self.mean(X), self.kernel(X))

        self.X_train_ = X
        X, y = torch.as_tensor(X), torch.as_tensor(y)
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.model = Model(X, y, likelihood).double()
        likelihood.double()
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, self.model)
        optimiser = torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.model.train()
        for _ in range(100):
            optimiser.zero_grad()
            loss = -objective(self.model(X), y)
            loss.backward()
            optimiser.step()
        self.model.eval()
        return self

    def predict(self, X):
        import torch

        with torch.no_grad():
            return self.model(torch.as_tensor(X)).mean.numpy()


def trees(name, **parameters):
    """lightgbm with its defaults."""

    def make(X):
        import lightgbm

        return getattr(lightgbm, name)(**TREES, **parameters)

    return scaled(make)


C = {"C": [0.1, 1, 10, 100, 1000]}
CURVE = {
    "RVMRegressor": ours(RVMRegressor),
    "RVMRegressor, sparse": ours(partial(RVMRegressor, vectors="sparse")),
    "RVMRegressor, sparse, scale": ours(partial(RVMRegressor, vectors="sparse", gamma="scale")),
    "DRVMRegressor": ours(DRVMRegressor),
    "fastrvm": fast_machine("RVR"),
    "fastrvm, CV": fast_machine("RVR", tuned=True),
    "sklearn-rvm": em_machine("EMRVR"),
    "scikit-learn GP": process(each_input=False),
    "scikit-learn GP, each input": process(each_input=True),
    "gpytorch GP, each input": scaled(lambda X: TorchProcess()),
    "SVR, CV": scaled(lambda X: by_width(SVR(), X.shape[1], epsilon=[0.01, 0.1, 0.3], **C)),
    "lightgbm": trees("LGBMRegressor"),
}
BOUNDARY = {
    "RVMClassifier": ours(RVMClassifier),
    "RVMClassifier, sparse": ours(partial(RVMClassifier, vectors="sparse")),
    "RVMClassifier, sparse, scale": ours(partial(RVMClassifier, vectors="sparse", gamma="scale")),
    "PCVMClassifier": ours(PCVMClassifier),
    "PFCVMClassifier": ours(PFCVMClassifier),
    "fastrvm": fast_machine("RVC"),
    "fastrvm, CV": fast_machine("RVC", tuned=True),
    "sklearn-rvm": em_machine("EMRVC"),
    "scikit-learn GP": scaled(class_process),
    "SVC, CV": scaled(lambda X: by_width(SVC(probability=True, random_state=0), X.shape[1], **C)),
    "lightgbm": trees("LGBMClassifier"),
}


# --- Linear models ---


PATH = {"alpha": np.geomspace(1, 1e-2, 30)}
"""Penalties in standard units, where one is about the largest of use."""


def celer_lasso():
    """Its own `LassoCV` does not take scikit-learn's present arguments."""
    from celer import Lasso

    return GridSearchCV(Lasso(), PATH, cv=5, error_score="raise")


LINEAR = {
    name: REGRESSORS[name]
    for name in (
        "averaged",
        "single model",
        "LassoCV",
        "ElasticNetCV",
        "RidgeCV",
        "MCP, CV",
        "abess, GIC",
        "abess, CV",
        "scikit-learn ARD",
        "BayesianRidge",
    )
} | {"celer, CV": selector(celer_lasso), "millipede": millipede, "pysusie": susie, "lightgbm": trees("LGBMRegressor")}


def celer_logistic(X, y):
    """celer's L1 logistic regression, its penalty by 5-fold cross-validation of the log loss."""
    from celer import LogisticRegression

    scaler = StandardScaler().fit(X)
    grid = {"C": np.geomspace(1e-3, 1e1, 10)}  # fewer rows than 1/C leave nothing, more separate the classes
    model = GridSearchCV(LogisticRegression(solver="celer-pn"), grid, cv=5, scoring="neg_log_loss")
    model.fit(scaler.transform(X), y)
    kept = np.flatnonzero(model.best_estimator_.coef_)
    return Answer(lambda Z: model.predict_proba(scaler.transform(Z))[:, 1], kept)


LOGISTIC = CLASSIFIERS | {"celer, CV": celer_logistic, "lightgbm": trees("LGBMClassifier")}


def multinomial(l1_ratio, solver):
    """scikit-learn's logistic regression of several classes, penalty by 5-fold cross-validation of the log loss."""

    def fit(X, y):
        scaler = StandardScaler().fit(X)
        model = LogisticRegressionCV(
            Cs=5,
            l1_ratios=(l1_ratio,),
            solver=solver,
            cv=5,
            scoring="neg_log_loss",
            max_iter=300,
            use_legacy_attributes=False,
        ).fit(scaler.transform(X), y)
        kept = np.flatnonzero(model.coef_.any(axis=0)) if l1_ratio else None
        return Answer(lambda Z: model.predict_proba(scaler.transform(Z)), kept)

    return fit


def subset_multinomial(X, y):
    """abess with one-hot classes."""
    from abess import MultinomialRegression

    columns = np.flatnonzero(np.ptp(X, axis=0) > 0)  # abess refuses constant columns
    scaler = StandardScaler().fit(X[:, columns])
    hot = (y[:, None] == np.unique(y)).astype(int)
    model = MultinomialRegression(ic_type="gic").fit(scaler.transform(X[:, columns]), hot)
    kept = columns[np.flatnonzero(np.any(model.coef_, axis=1))]
    return Answer(lambda Z: model.predict_proba(scaler.transform(Z[:, columns])), kept)


MULTICLASS = {
    "averaged": ours(SparseLogisticRegression),
    "single model": ours(partial(SparseLogisticRegression, average=False)),
    "RVMClassifier": ours(RVMClassifier),
    "L1, CV": multinomial(1, "saga"),
    "L2, CV": multinomial(0, "lbfgs"),
    "abess, GIC": subset_multinomial,
    "fastrvm": fast_machine("RVC"),
    "sklearn-rvm": em_machine("EMRVC"),
    "SVC, CV": BOUNDARY["SVC, CV"],
    "lightgbm": trees("LGBMClassifier"),
}


# --- Several outputs, sparse matrices ---


def joint(make):
    """A model of others that selects features for all outputs together."""

    def fit(X, Y):
        units = Units(X, Y)
        model = units.fit(make(), X, Y)
        coef = np.asarray(getattr(model, "best_estimator_", model).coef_)
        coef = coef.T if coef.shape[0] == Y.shape[1] else coef
        return Answer(units.back(model.predict), np.flatnonzero(coef.any(axis=1)))

    return fit


def our_outputs(**parameters):
    def fit(X, Y):
        model = ARDRegressor(**parameters).fit(X, Y)
        return Answer(model.predict, np.unique(np.concatenate(model.active_)))

    return fit


def celer_outputs():
    from celer import MultiTaskLasso

    return GridSearchCV(MultiTaskLasso(), PATH, cv=5, error_score="raise")


def skglm_outputs():
    from skglm import MultiTaskLasso

    return GridSearchCV(MultiTaskLasso(), PATH, cv=5, error_score="raise")


def subset_outputs():
    from abess import MultiTaskRegression

    return MultiTaskRegression(ic_type="gic")


OUTPUTS = {
    "joint": our_outputs(multi_output="joint"),
    "averaged": our_outputs(),
    "single model": our_outputs(average=False),
    "MultiTaskLassoCV": joint(partial(MultiTaskLassoCV, cv=5)),
    "celer, CV": joint(celer_outputs),
    "skglm, CV": joint(skglm_outputs),
    "abess, GIC": joint(subset_outputs),
}


def stored(make):
    """A model of others on a sparse matrix, whose columns are scaled but not centred."""

    def fit(X, y):
        model = make_pipeline(MaxAbsScaler(), make()).fit(X, y)
        return Answer(model.predict, np.flatnonzero(getattr(model[-1], "best_estimator_", model[-1]).coef_))

    return fit


def stored_lasso(X, y):
    """celer on penalties below the least one that sets all weights to zero; rare columns have little variance."""
    from celer import Lasso

    largest = np.abs(X.T @ (y - y.mean())).max() / len(y)
    penalties = {"alpha": largest * PATH["alpha"]}
    return stored(lambda: GridSearchCV(Lasso(), penalties, cv=5, error_score="raise"))(X, y)


def stored_trees(X, y):
    from lightgbm import LGBMRegressor

    return Answer(LGBMRegressor(**TREES).fit(X, y).predict)


def stored_subset():
    from abess import LinearRegression

    return LinearRegression(ic_type="gic")


SPARSE = {
    "averaged": ours(ARDRegressor),
    "single model": ours(partial(ARDRegressor, average=False)),
    "LassoCV": stored(partial(LassoCV, cv=5)),
    "celer, CV": stored_lasso,
    "abess, GIC": stored(stored_subset),
    "lightgbm": stored_trees,
}

KINDS = {
    "curve": CURVE,
    "boundary": BOUNDARY,
    "linear": LINEAR,
    "logistic": LOGISTIC,
    "multi-class": MULTICLASS,
    "outputs": OUTPUTS,
    "sparse": SPARSE,
}
"""Methods by kind; the first is the one whose time is the unit."""
OURS = {
    "averaged",
    "single model",
    "joint",
    *(name for kind in (CURVE, BOUNDARY) for name in kind if name.split(",")[0].endswith(("Regressor", "Classifier"))),
}
"""Names of the methods of this project."""
