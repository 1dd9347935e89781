"""Outputs that share features, groups, outliers, counts and non-negative weights, beside other packages.

python benchmarks/families.py [--only outputs] [--seeds 8]
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sparsebayes import ARDRegressor, SparsePoissonRegressor


def f1(found: Any, true: Any) -> float:
    """Harmonic mean of precision and recall."""
    found, true = set(np.ravel(found).tolist()), set(np.ravel(true).tolist())
    return 2 * len(found & true) / max(len(found) + len(true), 1)


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """What a fit returns, and the seconds of processor time that it took."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit()
    return found, time.process_time() - start


def report(title: str, rows: dict[str, list[tuple[float, ...]]], head: str) -> None:
    """Means of what was measured, one line for each model."""
    print(f"\n{title}\n{'':40} {head}")
    for name, values in rows.items():
        print(f"{name:40}", *(f"{value:10.3f}" for value in np.mean(values, axis=0)))


def outputs(n_seeds: int) -> None:
    """Support of ten shared features by the joint model and by each output alone."""
    for T, snr in ((5, 1.0), (5, 2.0), (20, 1.0)):
        rows: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(n_seeds):
            rng = np.random.default_rng([seed, T])
            X, W = rng.standard_normal((100, 500)), np.zeros((500, T))
            W[:10] = rng.choice([-1, 1], (10, T))
            signal = X @ W
            Y = signal + signal.std(axis=0) / np.sqrt(snr) * rng.standard_normal((100, T))
            fresh = rng.standard_normal((1000, 500))
            ways = {
                "joint": ARDRegressor(multi_output="joint", average=True),
                "joint, one model": ARDRegressor(multi_output="joint", average=False),
                "independent (two outputs)": ARDRegressor(),
            }
            for name, model in ways.items():
                n = 2 if name.startswith("independent") else T
                _, seconds = timed(lambda model=model, X=X, Y=Y[:, :n]: model.fit(X, Y))
                distance = model.predict(fresh) - fresh @ W[:, :n]
                error = np.sqrt((distance**2).mean() / ((fresh @ W[:, :n]) ** 2).mean())
                found = np.mean([f1(each, range(10)) for each in model.active_])
                rows.setdefault(name, []).append((found, error, seconds))
        report(f"100×500, 10 shared features, {T} outputs, signal-to-noise ratio {snr:g}", rows, "F1, error, seconds")
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((500, 2000)), np.zeros((2000, 100))
    W[:20] = rng.standard_normal((20, 100))
    Y = X @ W + 4 * rng.standard_normal((500, 100))
    joint, seconds = timed(lambda: ARDRegressor(multi_output="joint").fit(X, Y))
    report("500×2,000, 100 outputs", {"joint, one model": [(f1(joint.active_[0], range(20)), seconds)]}, "F1, seconds")


def group_mcp(alpha: float, X: Any, y: Any, size: int, turns: int = 3, gamma: float = 3.0) -> Any:
    """Group MCP by local linear approximations: group lassos with weights 1 - ‖w_g‖/(γ α √size), or zero.

    skglm has the minimax concave penalty for single features and for several tasks (`BlockMCPenalty`), not for groups.
    """
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD
    from skglm.utils.data import grp_converter

    indices, pointers = grp_converter(size, X.shape[1])
    weights = np.full(X.shape[1] // size, np.sqrt(size))
    for _ in range(turns):
        penalty = WeightedGroupL2(alpha, weights, pointers, indices)
        solver = GroupBCD(fit_intercept=True, tol=1e-5)
        fitted = GeneralizedLinearEstimator(QuadraticGroup(pointers, indices), penalty, solver).fit(X, y)
        norm = np.linalg.norm(fitted.coef_.reshape(-1, size), axis=1)
        weights = np.maximum(np.sqrt(size) - norm / (gamma * alpha), 0.0)
    return fitted


def cross_validated(fit: Callable[[float, Any, Any], Any], alphas: Any, X: Any, y: Any) -> Any:
    """The fit at the penalty of least squared error over five folds."""
    from sklearn.model_selection import KFold

    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    loss = [
        sum(((fit(a, X[keep], y[keep]).predict(X[out]) - y[out]) ** 2).sum() for keep, out in folds) for a in alphas
    ]
    return fit(alphas[int(np.argmin(loss))], X, y)


def groups(n_seeds: int) -> None:
    """40 groups of 5 correlated features, 4 of them active, beside best subsets, the group lasso and group MCP."""
    from abess.linear import LinearRegression
    from skglm import GroupLasso
    from sklearn.model_selection import GridSearchCV

    labels = np.repeat(np.arange(40), 5)
    for n in (100, 200):
        rows: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            X, fresh = (
                (
                    np.sqrt(0.5) * rng.standard_normal((m, 40, 1)) + np.sqrt(0.5) * rng.standard_normal((m, 40, 5))
                ).reshape(m, 200)
                for m in (n, 2000)
            )
            true, w = rng.choice(40, 4, replace=False), np.zeros(200)
            chosen = np.isin(labels, true)
            w[chosen] = rng.choice([-1, 1], 20) * rng.uniform(0.5, 1.5, 20)
            y = X @ w + 0.5 * (X @ w).std() * rng.standard_normal(n)
            top = max(np.linalg.norm((X - X.mean(0))[:, labels == g].T @ (y - y.mean())) / n for g in range(40))
            lasso = GridSearchCV(GroupLasso(groups=5), {"alpha": top * np.logspace(0, -2.5, 20)}, cv=5)
            models = {
                "groups, averaged": ARDRegressor(groups=labels),
                "groups, one model": ARDRegressor(groups=labels, average=False),
                "abess, GIC": LinearRegression(group=labels, ic_type="gic"),
                "abess, cross-validated": LinearRegression(group=labels, cv=5),
                "skglm group lasso, cross-validated": lasso,
            }
            ways = {name: model.fit for name, model in models.items()}
            alphas = top / np.sqrt(5) * np.logspace(0, -2, 12)
            ways["skglm, reweighted to group MCP"] = partial(cross_validated, partial(group_mcp, size=5), alphas)
            for name, way in ways.items():
                fitted, seconds = timed(lambda way=way, X=X, y=y: way(X, y))
                best = getattr(fitted, "best_estimator_", fitted)
                found = labels[getattr(best, "active_", np.flatnonzero(best.coef_))]
                error = np.sqrt(np.mean((fitted.predict(fresh) - fresh @ w) ** 2)) / (fresh @ w).std()
                exact = float(set(found.tolist()) == set(true.tolist()))
                rows.setdefault(name, []).append((f1(found, true), exact, error, seconds))
        report(f"{n} rows, 40 groups of 5, 4 active", rows, "F1, exact, error, seconds")


def outliers(n_seeds: int) -> None:
    """Features and rows named with gross errors in a share of the rows."""
    weights = np.linspace(0.4, 1.5, 8) * (-1) ** np.arange(8)
    for share in (0.0, 0.1, 0.2):
        rows: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(n_seeds):
            rng = np.random.default_rng([seed, 200, 100])
            X, fresh = rng.standard_normal((200, 100)), rng.standard_normal((2000, 100))
            y, new = (3 + each[:, :8] @ weights + 0.5 * rng.standard_normal(len(each)) for each in (X, fresh))
            bad = rng.permutation(200) < round(share * 200)
            y = y + bad * rng.choice([-1, 1], 200) * rng.uniform(5, 20, 200)
            for noise in ("gaussian", "student", "outliers"):
                model, seconds = timed(lambda noise=noise, X=X, y=y: ARDRegressor(noise=noise).fit(X, y))
                named = np.isin(np.arange(200), getattr(model, "outliers_", []))
                ends = model.predict_interval(fresh)
                rows.setdefault(noise, []).append(
                    (
                        float(np.isin(np.arange(8), model.active_).sum()),
                        np.sqrt(np.mean((model.predict(fresh) - new) ** 2)),
                        float((named & bad).sum()),
                        float((named & ~bad).sum()),
                        float(((ends[:, 0] <= new) & (new <= ends[:, 1])).mean()),
                        seconds,
                    )
                )
        report(f"{share:.0%} gross errors", rows, "true features, error, outliers named, wrongly, coverage, seconds")


def positive(n_seeds: int) -> None:
    """Unmixing of simulated spectra."""
    from scipy.optimize import nnls
    from sklearn.linear_model import LassoCV

    x = np.linspace(0, 1, 200)
    for noise in (0.02, 0.05, 0.1):
        rows: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            library = np.zeros((200, 60))
            for j in range(60):
                for _ in range(rng.integers(3, 8)):
                    height, place, width = rng.uniform(0.3, 1), rng.uniform(), rng.uniform(0.01, 0.06)
                    library[:, j] += height * np.exp(-0.5 * ((x - place) / width) ** 2)
            w = np.zeros(60)
            w[rng.choice(60, 6, replace=False)] = rng.dirichlet(np.ones(6))
            y = library @ w + noise * (library @ w).max() * rng.standard_normal(200)
            for average in (True, False):
                model = ARDRegressor(positive=True, fit_intercept=False, average=average)
                _, seconds = timed(lambda model=model, X=library, y=y: model.fit(X, y))
                error, right = 100 * np.sqrt(np.mean((model.coef_ - w) ** 2)), (w[model.active_] > 0).sum()
                name = "positive=True" if average else "one model"
                rows.setdefault(name, []).append((error, float(len(model.active_)), float(right), seconds))
            ways = {
                "SciPy nnls": lambda X, y: nnls(X, y)[0],
                "lasso": lambda X, y: LassoCV(positive=True, fit_intercept=False, cv=5).fit(X, y).coef_,
            }
            for name, way in ways.items():
                coef, seconds = timed(lambda way=way, library=library, y=y: way(library, y))
                error, right = 100 * np.sqrt(np.mean((coef - w) ** 2)), ((coef > 0) & (w > 0)).sum()
                rows.setdefault(name, []).append((error, float((coef > 0).sum()), float(right), seconds))
        report(f"unmixing, noise {noise:.0%}", rows, "error x 100, kept, of them true, seconds")


def counts(n_seeds: int) -> None:
    """Poisson counts beside best subsets and the lasso."""
    from abess.linear import PoissonRegression
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Poisson
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton
    from sklearn.metrics import mean_poisson_deviance
    from sklearn.model_selection import KFold

    def lasso(alpha: float, X: Any, y: Any) -> Any:
        solver = ProxNewton(fit_intercept=True, tol=1e-4)
        return GeneralizedLinearEstimator(datafit=Poisson(), penalty=L1(alpha), solver=solver).fit(X, y)

    def rate(model: Any, X: Any) -> Any:
        return np.exp(np.clip(X @ model.coef_ + model.intercept_, -20, 20))

    def cross_validated(X: Any, y: Any) -> Any:
        alphas = np.abs(X.T @ (y - y.mean())).max() / len(y) * np.logspace(0, -2, 12)
        folds = list(KFold(5, shuffle=True, random_state=0).split(X))
        loss = [
            sum(mean_poisson_deviance(y[out], rate(lasso(alpha, X[keep], y[keep]), X[out])) for keep, out in folds)
            for alpha in alphas
        ]
        return lasso(alphas[int(np.argmin(loss))], X, y)

    rows: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X, fresh, w = rng.standard_normal((500, 200)), rng.standard_normal((3000, 200)), np.zeros(200)
        w[:8] = rng.choice([-1, 1], 8) * rng.uniform(0.15, 0.5, 8)
        y, new = (rng.poisson(np.exp(0.3 + each @ w)) for each in (X, fresh))
        ways = {
            "averaged": SparsePoissonRegressor().fit,
            "one model": SparsePoissonRegressor(average=False).fit,
            "abess, EBIC": PoissonRegression(ic_type="ebic").fit,
            "abess, cross-validated": PoissonRegression(cv=5).fit,
            "skglm L1, cross-validated": cross_validated,
        }
        for name, way in ways.items():
            model, seconds = timed(lambda way=way, X=X, y=y: way(X, y))
            found = getattr(model, "active_", np.flatnonzero(model.coef_))
            expected = model.predict(fresh) if hasattr(model, "active_") else rate(model, fresh)
            rows.setdefault(name, []).append((f1(found, range(8)), mean_poisson_deviance(new, expected), seconds))
    report("counts, 500×200, 8 true", rows, "F1, deviance, seconds")


PARTS: dict[str, Callable[[int], None]] = {
    "counts": counts,
    "positive": positive,
    "outputs": outputs,
    "groups": groups,
    "outliers": outliers,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(PARTS))
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args()
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            part(arguments.seeds)
