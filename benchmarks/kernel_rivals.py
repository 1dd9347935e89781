"""Kernel methods of the peer table, for curves and boundaries, and what their fitted models answer.

Widths of relevance vector machines of others are "scale", and by 5-fold cross-validation in a second entry, because
these packages do not choose a width.
"""

from functools import partial

import numpy as np
from contenders import Answer, Units
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from sparsebayes import DRVMRegressor, PCVMClassifier, PFCVMClassifier, RVMClassifier, RVMRegressor

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
