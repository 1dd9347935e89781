"""Fit the diabetes data that come with scikit-learn, and say what was kept, how sure that is, and how good."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold

from sparsebayes import ARDRegressor, __version__

DESCRIPTIONS = {
    "age": "age",
    "sex": "sex",
    "bmi": "body mass index",
    "bp": "mean blood pressure",
    "s1": "total cholesterol",
    "s2": "LDL cholesterol",
    "s3": "HDL cholesterol",
    "s4": "cholesterol / HDL",
    "s5": "log triglycerides",
    "s6": "blood sugar",
}


def main() -> None:
    """Print the whole story in one screen."""
    X, y = load_diabetes(return_X_y=True, as_frame=False, scaled=False)
    names = list(DESCRIPTIONS.values())
    model = ARDRegressor().fit(X, y)
    print(f"sparsebayes {__version__}: which measurements foretell the progression of diabetes?")
    print(f"Linear regression with automatic relevance determination, {len(X)} patients, {X.shape[1]} features.\n")
    _what_matters(model, X, names)
    _how_good(X, y)
    print(
        f"\nLog evidence {model.log_evidence_:.1f}; no single change of the model would raise it by more than "
        f"{model.optimality_gap_:.0e} nats ({model.n_iter_} steps)."
    )


def _what_matters(model: ARDRegressor, X: np.ndarray, names: list[str]) -> None:
    spread = X.std(axis=0)[model.active_]
    size = model.coef_[model.active_] * spread
    std = np.sqrt(np.diag(model.covariance_)) * spread
    print(f"Kept {len(model.active_)} of {len(names)}: a feature must bring {model.min_gain_:.1f} nats of evidence.\n")
    print("                       effect of 1 sd   95 % interval   relevance   evidence")
    for k in np.argsort(-model.gain_[model.active_]):
        j = model.active_[k]
        low, high = size[k] - 1.96 * std[k], size[k] + 1.96 * std[k]
        print(
            f"  {names[j]:22s} {size[k]:+12.1f}   {low:+6.1f} … {high:+5.1f} {model.relevance_[j]:11.3f} "
            f"{model.gain_[j]:7.1f} nats"
        )
    gone = [j for j in np.argsort(-model.gain_) if j not in model.active_]
    print("\n  not kept: " + ", ".join(f"{names[j]} ({model.gain_[j]:.1f})" for j in gone))


def _how_good(X: np.ndarray, y: np.ndarray) -> None:
    squared: dict[str, list[np.ndarray]] = {"sparsebayes": [], "lasso, cross-validated": [], "the mean alone": []}
    covered, kept, kept_lasso = [], [], []
    for train, test in KFold(10, shuffle=True, random_state=0).split(X):
        model = ARDRegressor().fit(X[train], y[train])
        scale = X[train].std(axis=0)
        lasso = LassoCV().fit(X[train] / scale, y[train])
        predictions = model.predict(X[test]), lasso.predict(X[test] / scale), y[train].mean()
        for name, prediction in zip(squared, predictions, strict=True):
            squared[name].append((y[test] - prediction) ** 2)
        low, high = model.predict_interval(X[test], coverage=0.9).T
        covered.append((low <= y[test]) & (y[test] <= high))
        kept.append(len(model.active_))
        kept_lasso.append(np.count_nonzero(lasso.coef_))
    error = {name: np.sqrt(np.concatenate(parts).mean()) for name, parts in squared.items()}
    print("\nOn patients it has not seen (10-fold cross-validation):")
    print(f"  error (RMSE) {error['sparsebayes']:5.1f} with {np.mean(kept):.1f} features;", end=" ")
    print(f"lasso {error['lasso, cross-validated']:.1f} with {np.mean(kept_lasso):.1f};", end=" ")
    print(f"the mean alone {error['the mean alone']:.1f}")
    print(f"  90 % intervals hold {100 * np.concatenate(covered).mean():.0f} % of the outcomes")
