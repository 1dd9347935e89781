"""Kernel models with their defaults on raw and on standardised inputs: errors apart, and warnings.

    OPENBLAS_NUM_THREADS=1 python benchmarks/units.py [--seeds 2] [--rows 200] [--sets abalone,wine] [--models RVM,DRVM]

The sets and models are those of kernels.py without the rivals. "Standardised" are inputs of mean 0 and standard
deviation 1 on the training rows, which go to the same model. Each line is a model: the largest and the mean relative
difference of its error over sets and draws, where that is, and how many fits warned that they did not converge.
"""

import argparse
import warnings

import numpy as np
from kernels import CLASSES, REGRESSIONS, classifiers, draw, regressors
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

OURS = ("RVM", "RVM sparse", "BLS", "DRVM", "PCVM", "PFCVM", "PFCVM sparse")


def fitted(model, X, y):
    """The fitted model, and whether it warned that it did not converge."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    return model, any(issubclass(each.category, ConvergenceWarning) for each in told)


def error(model, X, y):
    """The share of wrong classes, or the root mean squared error."""
    found = model.predict(X)
    return np.mean(found != y) if hasattr(model, "classes_") else np.sqrt(np.mean((found - y) ** 2))


def compared(make, X, y, X_test, y_test):
    """Errors on raw and on standardised inputs, and how many of the two fits warned."""
    scaler = StandardScaler().fit(X)
    raw, told = fitted(make(), X, y)
    standard, told_again = fitted(make(), scaler.transform(X), y)
    return error(raw, X_test, y_test), error(standard, scaler.transform(X_test), y_test), told + told_again


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--sets", help="some of the sets")
    parser.add_argument("--models", help="some of the models")
    args = parser.parse_args()
    names = args.sets.split(",") if args.sets else [*REGRESSIONS, *CLASSES]
    wanted = args.models.split(",") if args.models else OURS
    found = {}
    for name in names:
        models = regressors if name in REGRESSIONS else classifiers
        kind = "regression" if name in REGRESSIONS else "classes"
        for seed in range(args.seeds):
            data = draw(name, args.rows, seed)
            if data is None:
                print(f"{name}: not there", flush=True)
                break
            d = data[0].shape[1]
            for model in filter(models(d).__contains__, wanted):
                raw, standard, told = compared(lambda model=model, d=d, models=models: models(d)[model], *data)
                apart = raw / standard - 1 if standard else float(raw > 0)
                found.setdefault((kind, model), []).append((apart, told, f"{name}, draw {seed}"))
                if abs(apart) > 1e-3 or told:
                    print(f"{name:16s} {model:12s} {raw:.4f} {standard:.4f}  {apart:+.2%}  {told} warned", flush=True)
    for (kind, model), rows in found.items():
        apart = np.array([row[0] for row in rows])
        worst = int(np.abs(apart).argmax())
        print(
            f"{kind:10s} {model:12s} largest {apart[worst]:+.2%} ({rows[worst][2]})  mean {np.abs(apart).mean():.2%}  "
            f"{sum(row[1] for row in rows)} of {2 * len(rows)} fits warned"
        )


if __name__ == "__main__":
    main()
