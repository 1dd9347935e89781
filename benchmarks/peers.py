"""The project and its peers as functions (X, y) → (kept features, predict). Absent peers are left out with a note."""

import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.linear_model import ARDRegression, LassoCV, LinearRegression
from sklearn.model_selection import KFold

from sparsebayes import ARDRegressor


def _kept(model):
    return np.flatnonzero(model.coef_)


def ours(X, y, **parameters):
    """Our default."""
    model = ARDRegressor(**parameters).fit(X, y)
    return model.active_, model.predict


def ours_single(X, y):
    """The best single model."""
    return ours(X, y, average=False)


def ours_textbook(X, y):
    """Plain evidence maximisation."""
    return ours(X, y, min_gain=0)


def sklearn_ard(X, y):
    """scikit-learn's ARDRegression with its defaults."""
    model = ARDRegression().fit(X, y)
    return _kept(model), model.predict


def lasso_cv(X, y):
    """Lasso, penalty by 5-fold cross-validation."""
    model = LassoCV(cv=5).fit(X, y)
    return _kept(model), model.predict


def mcp_cv(X, y):
    """Minimax concave penalty of skglm, 5-fold cross-validation over 30 penalties on the lasso's path."""
    from skglm import MCPRegression

    mean, centre = X.mean(axis=0), y.mean()
    largest = np.abs((X - mean).T @ (y - centre)).max() / len(y)
    penalties = largest * np.geomspace(1, 1e-2, 30)
    errors = np.zeros(len(penalties))
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        model = MCPRegression(fit_intercept=True, warm_start=True)
        for i, penalty in enumerate(penalties):
            model.set_params(alpha=penalty).fit(X[train], y[train])
            errors[i] += ((y[test] - model.predict(X[test])) ** 2).sum()
    model = MCPRegression(alpha=penalties[errors.argmin()], fit_intercept=True).fit(X, y)
    return _kept(model), model.predict


def oracle(X, y, true):
    """Least squares on the true features."""
    model = LinearRegression().fit(X[:, true], y)
    return true, lambda Z: model.predict(Z[:, true])


PEERS = {
    "sparsebayes": ours,
    "sparsebayes, average=False": ours_single,
    "sparsebayes, min_gain=0": ours_textbook,
    "scikit-learn ARDRegression": sklearn_ard,
    "scikit-learn LassoCV": lasso_cv,
    "skglm MCP, CV": mcp_cv,
}
if find_spec("skglm") is None:
    print("skglm is not installed: its row is left out")
    del PEERS["skglm MCP, CV"]


def quietly(fit, X, y):
    """Fit with the peers' convergence warnings off."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(X, y)
