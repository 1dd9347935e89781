"""How much the engine's constants matter: each is halved and doubled, or divided and multiplied by ten.

    OPENBLAS_NUM_THREADS=1 python experiments/constants.py [--repeats 4] [--only LOOSE]

Twelve kinds of fits on generated data. For each value it prints the change of the log evidence less the price of what
is kept, in nats: the mean over all fits, the mean over the kind of fit that changes most, and in how many fits the kept
columns changed. Where the evidence has many maxima nearly any change leads to another one, so only a mean that is far
from zero, in standard errors, tells something.
"""

import argparse
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sparsebayes import ARDRegressor, PCVMClassifier, RVMClassifier, RVMRegressor, SparseLogisticRegression

CONSTANTS = {
    "ascent": ["EARLY_ACTIONS", "REFRESH_EVERY", "JOINT_EVERY"],
    "batch": ["PRUNE_BELOW", "PRICE_INFLATION", "MAX_CHANGE"],
    "candidates": ["TINY_PRECISION"],
    "gaussian_search": ["LOW_NOISE_GAIN", "LOW_NOISE_ADDITIONS", "PERTURBED_ADDITIONS", "PERTURBED_TOL"],
    "glm": ["MIN_Z"],
    "least_squares": ["INITIAL_NOISE", "LOW_NOISE"],
    "reweighted": ["MAX_INFLATION"],
    "scale_fit": ["SLOWEST", "FASTER", "JUDGE_BELOW"],
    "scales": ["LONGEST", "MIN_GAMMA"],
    "search": [
        "WORKING_SET",
        "BEST",
        "LOOSE",
        "MIN_RISE",
        "DOUBT",
        "TRIES",
        "LOWER_PRICE",
        "PERTURBED_ADDITIONS",
        "LABEL_NOISE",
    ],
    "state": ["WORKING_SET", "ALL_COLUMNS", "PREFETCH"],
    "extrapolation": ["LONGEST_EXTRAPOLATION"],
}
BY_TEN = {"LOOSE", "MAX_CHANGE", "MAX_INFLATION", "MIN_RISE", "MIN_Z", "PERTURBED_TOL", "PRUNE_BELOW"}
BY_TEN |= {"TINY_PRECISION"}
"""Constants that are an order of magnitude."""
GROWTH = {"FASTER", "PRICE_INFLATION"}
"""Factors of growth: what they exceed one by is changed."""

Rows = tuple[np.ndarray, np.ndarray]


def linear(n: int, d: int, classes: bool = False) -> Callable[[np.random.Generator], Rows]:
    """Eight of d features matter."""

    def draw(rng: np.random.Generator) -> Rows:
        X = rng.standard_normal((n, d))
        eta = X[:, :8] @ (rng.uniform(0.5, 1.5, 8) * rng.choice([-1, 1], 8))
        return (X, eta + rng.logistic(size=n) > 0) if classes else (X, eta + rng.standard_normal(n))

    return draw


def friedman(rng: np.random.Generator) -> Rows:
    """Friedman's first function, noise of standard deviation one."""
    X = rng.uniform(size=(240, 10))
    mean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, mean + rng.standard_normal(240)


def sinc(rng: np.random.Generator) -> Rows:
    """Sin x/x, noise of standard deviation 0.1."""
    X = rng.uniform(-10, 10, (100, 1))
    return X, np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(100)


def mixtures(rng: np.random.Generator) -> Rows:
    """Two classes, each a mixture of two Gaussians."""
    y, centres = rng.integers(0, 2, 250), np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    return centres[y, rng.integers(0, 2, 250)] + 0.17 * rng.standard_normal((250, 2)), y


TEXTBOOK = {"gamma": "scale", "vectors": "sparse"}
"""A search at one width; nothing but the search changes then."""
FITS: dict[str, tuple[Callable[[], Any], Callable[[np.random.Generator], Rows]]] = {
    "ARD 200×300": (ARDRegressor, linear(200, 300)),
    "ARD 100×1000": (ARDRegressor, linear(100, 1000)),
    "ARD reweighted 200×100": (lambda: ARDRegressor(solver="reweighted-l1"), linear(200, 100)),
    "ARD batch 200×100": (lambda: ARDRegressor(solver="fixed-point"), linear(200, 100)),
    "RVM Friedman": (partial(RVMRegressor, **TEXTBOOK), friedman),
    "RVM sinc": (partial(RVMRegressor, **TEXTBOOK), sinc),
    "SLR 400×100": (SparseLogisticRegression, linear(400, 100, True)),
    "SLR 200×1000": (SparseLogisticRegression, linear(200, 1000, True)),
    "SLR variational 200×30": (lambda: SparseLogisticRegression(inference="variational"), linear(200, 30, True)),
    "SLR reweighted 200×30": (
        lambda: SparseLogisticRegression(inference="reweighted-l1", min_gain=0),
        linear(200, 30, True),
    ),
    "RVC mixtures": (partial(RVMClassifier, **TEXTBOOK), mixtures),
    "PCVM mixtures": (partial(PCVMClassifier, gamma="scale"), mixtures),
}


class End(NamedTuple):
    """Where a fit ended."""

    evidence: float
    kept: tuple[int, ...]


def ends(repeats: int) -> dict[tuple[str, int], End]:
    """All fits."""
    found = {}
    for name, (make, draw) in FITS.items():
        for seed in range(repeats):
            model = make().fit(*draw(np.random.default_rng(seed)))
            kept = getattr(model, "active_", None)
            kept = model.relevance_indices_ if kept is None else kept
            price = getattr(model, "min_gain_", 0.0) * len(kept)
            found[name, seed] = End(float(model.log_evidence_) - price, tuple(sorted(np.asarray(kept).tolist())))
    return found


def others(name: str, value: Any) -> Iterator[Any]:
    """The values to try."""
    for factor in (0.1, 10) if name in BY_TEN else (0.5, 2):
        if name in GROWTH:
            yield 1 + factor * (value - 1)
        else:
            yield max(1, round(factor * value)) if isinstance(value, int) else factor * value


def with_value(module: str, name: str, value: Any, repeats: int) -> dict[tuple[str, int], End]:
    """All fits with another value of a constant, wherever that was imported to."""
    here = sys.modules[f"sparsebayes.engine.{module}"]
    old = getattr(here, name)
    users = [each for key, each in list(sys.modules.items()) if key.startswith("sparsebayes.")]
    users = [each for each in users if vars(each).get(name) is old]
    if name in ("WORKING_SET", "PERTURBED_ADDITIONS"):  # two modules have their own
        users = [here]
    for each in users:
        setattr(each, name, value)
    try:
        return ends(repeats)
    finally:
        for each in users:
            setattr(each, name, old)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    base = ends(options.repeats)
    for module, names in CONSTANTS.items():
        for name in names:
            if options.only not in (None, name):
                continue
            value = getattr(sys.modules[f"sparsebayes.engine.{module}"], name)
            for other in others(name, value):
                there = with_value(module, name, other, options.repeats)
                change = {key: there[key].evidence - base[key].evidence for key in base}
                by_kind = defaultdict(list)
                for (kind, _), nats in change.items():
                    by_kind[kind].append(nats)
                most = max(by_kind, key=lambda kind: abs(np.mean(by_kind[kind])))
                moved = sum(there[key].kept != base[key].kept for key in base)
                mean, kind_mean = np.mean(list(change.values())), np.mean(by_kind[most])
                spread = np.std(by_kind[most]) / np.sqrt(options.repeats)
                print(f"{module}.{name} {value:g} -> {other:g}: mean {mean:+.4f}, ", end="")
                print(f"{most} {kind_mean:+.3f} ± {spread:.3f}, {moved} of {len(base)} supports", flush=True)


if __name__ == "__main__":
    main()
