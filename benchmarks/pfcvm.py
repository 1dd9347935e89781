"""Samples and features chosen together, for two classes: PFCVM beside models that choose one of them or none.

    python benchmarks/pfcvm.py [--repeats 20] [--only ripley,banana]

Test error in per cent, kept features (and how many of the first two), vectors and processor seconds a fit. Ripley's set
(its 250 training rows, and 100 of them as in Tipping's table) and banana get 20 useless features of the same spread;
there the plain machine on the two true features is shown too, which is what can be hoped for. Waveform and image are as
they are; the genes of colon (logarithms) and leukemia are split into ten folds, beside an L1 path with its penalty by
cross-validation. Inputs are standardised on the training rows. Sets need the data folder and are left out where it is
not there.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from peers import quietly
from sets import official, percent_wrong, ripley, table, with_useless
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from sparsebayes import PFCVMClassifier, RVMClassifier

FOLDS = 10


def all_of_ripley(seed):
    """The 250 training rows and 1,000 test rows, as they are given."""
    X, y = table("ripley_synth")
    return X[:250], y[:250], X[250:], y[250:]


def genes(name, transform):
    """Folds of a set with thousands of features; every ten seeds are one partition."""

    def draw(seed):
        X, y = table(name)
        X = transform(X)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed // FOLDS).split(X, y)
        train, test = list(folds)[seed % FOLDS]
        return X[train], y[train], X[test], y[test]

    return draw


def l1_path(seed):
    """Logistic regression under an L1 penalty, chosen by 5-fold cross-validation."""
    return LogisticRegressionCV(
        Cs=10, cv=5, penalty="l1", solver="liblinear", scoring="accuracy", random_state=seed, max_iter=1000
    )


def relevance_machine(seed):
    return RVMClassifier(vectors="sparse")


def both(seed):
    return PFCVMClassifier(vectors="sparse", n_restarts=5, random_state=seed)


BESIDE_USELESS = {"PFCVM": (both, None), "RVM": (relevance_machine, None), "RVM, true only": (relevance_machine, 2)}
BESIDE_RVM = {"PFCVM": (both, None), "RVM": (relevance_machine, None)}
BESIDE_L1 = {"PFCVM": (both, None), "L1 path": (l1_path, None)}
# Draw, contenders (how to make them, and how many of the features they see), how often at most.
PROBLEMS = {
    "ripley": (with_useless(all_of_ripley), BESIDE_USELESS, 100),
    "ripley100": (with_useless(ripley), BESIDE_USELESS, 100),
    "banana": (with_useless(official("banana")), BESIDE_USELESS, 20),
    "waveform": (official("waveform"), BESIDE_RVM, 20),
    "image": (official("image"), BESIDE_RVM, 20),
    "colon": (genes("colon_alon", np.log), BESIDE_L1, FOLDS),
    "leukemia": (genes("leukemia_golub", np.asarray), BESIDE_L1, FOLDS),
}


def kept(model):
    """Which features have a say."""
    if hasattr(model, "get_support"):
        return model.get_support()
    return model.coef_[0] != 0 if hasattr(model, "coef_") else np.ones(model.n_features_in_, dtype=bool)


def score(model, X, y, X_test, y_test):
    """Error, kept features, those of the first two, vectors and seconds."""
    start = time.process_time()
    quietly(model.fit, X, y)
    seconds, features = time.process_time() - start, kept(model)
    vectors = len(getattr(model, "relevance_indices_", ()))
    return percent_wrong(model.predict(X_test), y_test), features.sum(), features[:2].sum(), vectors, seconds


def scored(draw, contenders, repeats):
    """Scores of every contender on every draw."""
    scores = {name: [] for name in contenders}
    for seed in range(repeats):
        X, y, X_test, y_test = draw(seed)
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
        for name, (make, n_seen) in contenders.items():
            scores[name].append(score(make(seed), X[:, :n_seen], y, X_test[:, :n_seen], y_test))
    return scores


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--only", help=f"some of {','.join(PROBLEMS)}")
    given = parser.parse_args()
    names = given.only.split(",") if given.only else list(PROBLEMS)
    if unknown := set(names) - PROBLEMS.keys():
        parser.error(f"--only: no problem {', '.join(sorted(unknown))}; there are {', '.join(PROBLEMS)}")
    print(
        "problem    model             error % ± its standard error, features, of the first two, vectors, seconds a fit"
    )
    for name in names:
        draw, contenders, most = PROBLEMS[name]
        repeats = min(given.repeats, most)
        try:
            scores = scored(draw, contenders, repeats)
        except FileNotFoundError as missing:
            print(f"{name}: no {Path(missing.filename).name} in the data folder, left out")
            continue
        for contender, rows in scores.items():
            error, *counts, seconds = np.mean(rows, axis=0)
            spread = np.std(rows, axis=0)[0] / np.sqrt(len(rows))
            told = " ".join(f"{count:7.2f}" for count in counts)
            print(
                f"{name:10s} {contender:15s} {error:7.2f} ± {spread:<5.2f} {told} {seconds:8.2f} s  ({repeats} draws)"
            )


if __name__ == "__main__":
    main()
