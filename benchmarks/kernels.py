"""Kernel models with their defaults on raw tables, against what else is used for them.

    OPENBLAS_NUM_THREADS=1 python benchmarks/kernels.py [--seeds 3] [--rows 200] [--only regression|classes]
                                                        [--sets pima768,banana] [--models RVM,GP,SVC]

Each line is a data set: the mean over draws of so many training rows of the root mean squared error (over the standard
deviation of the target) or of the error in per cent, then the mean log density (log probability) of a test row, the
share of test rows in 90 % intervals, the vectors kept, the processor seconds, and by how much the error of the first
model is larger on the same draws, with its standard error. Rivals with a kernel get standardised inputs and
cross-validated parameters (support vectors), or parameters of largest likelihood (Gaussian process). Sets are read from
the folder of data sets (SPARSEBAYES_DATA), or made; those that are not there are skipped.
"""

import argparse
import time

import numpy as np
import pandas as pd
from peers import quietly
from scipy.stats import norm
from sets import SETS
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine, make_friedman1, make_friedman2
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from sparsebayes import (
    BLSRegressor,
    DRVMRegressor,
    PCVMClassifier,
    PFCVMClassifier,
    RVMClassifier,
    RVMRegressor,
)

REGRESSIONS = [
    "abalone",
    "boston",
    "diabetes",
    "energy",
    "friedman1",
    "friedman2",
    "kin8nm",
    "mcycle",
    "power_plant",
    "prostate_psa",
    "wine_quality_red",
]
CLASSES = [
    "banana",
    "breast_cancer",
    "haberman",
    "image",
    "ionosphere",
    "pima768",
    "ripley_synth",
    "sonar",
    "twonorm",
    "waveform",
    "wdbc",
    "wine",
]
MADE = {
    "diabetes": lambda n, seed: load_diabetes(return_X_y=True, scaled=False),
    "wdbc": lambda n, seed: load_breast_cancer(return_X_y=True),
    "wine": lambda n, seed: load_wine(return_X_y=True),
    "digits": lambda n, seed: load_digits(return_X_y=True),
    "friedman1": lambda n, seed: make_friedman1(n, random_state=seed, noise=1.0),
    "friedman2": lambda n, seed: make_friedman2(n, random_state=seed, noise=125.0),
}
TEST_ROWS = 1500


def draw(name, n_rows, seed):
    """Train and test rows; None where the set is not there."""
    if name in MADE:
        X, y = MADE[name](n_rows + TEST_ROWS, seed)
    elif (SETS / f"{name}.csv").exists():
        table = pd.read_csv(SETS / f"{name}.csv").to_numpy(dtype=np.float64)
        X, y = table[:, :-1], table[:, -1]
    else:
        return None
    order = np.random.default_rng(seed).permutation(len(X))
    n = min(n_rows, int(0.7 * len(X)))
    train, test = order[:n], order[n : n + TEST_ROWS]
    return X[train], y[train], X[test], y[test]


def gp_kernel(scale):
    return ConstantKernel(1.0, (1e-3, 1e4)) * RBF(scale, (1e-2, 1e3)) + WhiteKernel(0.1, (1e-6, 1e1))


def svm(kind, d):
    grid = {"C": [0.1, 1, 10, 100, 1000], "gamma": list(np.array([0.03, 0.1, 0.3, 1, 3]) / d)}
    grid |= {"epsilon": [0.01, 0.1, 0.3]} if kind is SVR else {}
    return GridSearchCV(kind() if kind is SVR else kind(probability=True, random_state=0), grid, cv=5)


def regressors(d):
    start = np.sqrt(d)
    process = {"normalize_y": True, "n_restarts_optimizer": 2, "random_state": 0}
    return {
        "RVM": RVMRegressor(),
        "RVM sparse": RVMRegressor(vectors="sparse"),
        "BLS": BLSRegressor(),
        "DRVM": DRVMRegressor(),
        "GP": make_pipeline(StandardScaler(), GaussianProcessRegressor(gp_kernel(start), **process)),
        "GP, each input": make_pipeline(
            StandardScaler(), GaussianProcessRegressor(gp_kernel(np.full(d, start)), **process)
        ),
        "SVR": make_pipeline(StandardScaler(), svm(SVR, d)),
        "boosting": HistGradientBoostingRegressor(random_state=0),
        "forest": RandomForestRegressor(random_state=0),
    }


def classifiers(d):
    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(np.sqrt(d), (1e-2, 1e3))
    return {
        "RVM": RVMClassifier(),
        "RVM sparse": RVMClassifier(vectors="sparse"),
        "PCVM": PCVMClassifier(),
        "PFCVM": PFCVMClassifier(),
        "PFCVM sparse": PFCVMClassifier(vectors="sparse"),
        "GP": make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel, random_state=0)),
        "SVC": make_pipeline(StandardScaler(), svm(SVC, d)),
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "forest": RandomForestClassifier(random_state=0),
    }


def judged_regression(name, model, X, y, unit):
    """Error, log density, coverage; the last two are nan where a model has no standard deviation."""
    if name in ("SVR", "boosting", "forest"):
        return np.sqrt(np.mean((y - model.predict(X)) ** 2)) / unit, np.nan, np.nan
    mean, std = model.predict(X, return_std=True)
    low, high = (
        model.predict_interval(X).T if hasattr(model, "predict_interval") else (mean - 1.645 * std, mean + 1.645 * std)
    )
    density = norm.logpdf(y, mean, std).mean() + np.log(unit)
    return np.sqrt(np.mean((y - mean) ** 2)) / unit, density, np.mean((low <= y) & (y <= high))


def judged_classes(name, model, X, y):
    """Error in per cent, log probability."""
    p = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return 100 * np.mean(model.predict(X) != y), np.log(np.maximum(p, 1e-6)).mean(), np.nan


def vectors(model):
    kept = getattr(model, "dual_coef_", None)
    return np.nan if kept is None else sum(map(len, kept)) if isinstance(kept, list) else len(kept)


def run(names, models_for, judge, args):
    seeds, n_rows = args.seeds, args.rows
    for name in names:
        if args.sets and name not in args.sets.split(","):
            continue
        table = {}
        for seed in range(seeds):
            data = draw(name, n_rows, seed)
            if data is None:
                print(f"{name}: not there", flush=True)
                break
            X, y, X_test, y_test = data
            for kind, model in models_for(X.shape[1]).items():
                if args.models and kind not in args.models.split(","):
                    continue
                began = time.process_time()
                quietly(model.fit, X, y)
                seconds = time.process_time() - began
                table.setdefault(kind, []).append((*judge(kind, model, X_test, y_test, y), vectors(model), seconds))
        for kind, rows in table.items():
            error, density, coverage, kept, seconds = np.mean(rows, axis=0)
            more = np.subtract(next(iter(table.values())), rows)[:, 0]
            spread = more.std(ddof=1) / np.sqrt(len(more)) if len(more) > 1 else np.nan
            print(
                f"{name:16s} {kind:14s} error {error:7.3f}  density {density:6.3f}  coverage {coverage:5.2f}  "
                f"vectors {kept:5.0f}  {seconds:6.2f} s  "
                f"{more.mean():+.3f} ± {spread:.3f}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--only", choices=["regression", "classes"])
    parser.add_argument("--sets", help="some of the sets")
    parser.add_argument("--models", help="some of the models")
    args = parser.parse_args()
    if args.only != "classes":
        run(
            REGRESSIONS,
            regressors,
            lambda k, m, X, y, train: judged_regression(k, m, X, y, train.std()),
            args,
        )
    if args.only != "regression":
        run(CLASSES, classifiers, lambda k, m, X, y, train: judged_classes(k, m, X, y), args)


if __name__ == "__main__":
    main()
