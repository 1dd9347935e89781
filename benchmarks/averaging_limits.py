"""What exact inference would say where averages over models fall short: is it the chains, or the prior?

    OPENBLAS_NUM_THREADS=1 python benchmarks/averaging_limits.py [--only neighbours]

neighbours: AR(1) 0.95 with 1,000×200. Features that are missed: their probability by default, by chains of 40,000
flips, and by enumeration of all sets of up to four of the nine features around each, the other true features being in.
dense: how often 90 % intervals contain weights where 100 of 200 features are true (100 rows, six data sets): as they
are, with chains of 30,000 flips, and with the inclusion rate known.
prior: data drawn from the prior itself, 100×200. How often 90 % intervals of weights contain them.
worlds: the leukemia genes. Log evidence, by Laplace's method and with the prior, of the dense world (half of all genes)
and of some sparse models (one of 100 genes, two of 30): a lower bound of the sparse world.
"""

import argparse
from itertools import combinations, product
from pathlib import Path

import numpy as np
from averaging_classes import gene_sets
from designs import DESIGNS
from logistic import DATA
from peers import quietly
from problems import Linear
from scipy.special import expit, logsumexp

from sparsebayes import ARDRegressor
from sparsebayes.core.inclusion import DENSE, InclusionPrior
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import averaging
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.model_average import LOGISTIC_VARIANCE
from sparsebayes.engine.sets import Sets

WINDOW, MOST = 4, 4


def enumerated(X, y, j, true):
    """Probability of feature j, where only it and its neighbours may change."""
    n, d = X.shape
    rows = DenseRows.of(X).standardised(np.ones(n), centre=True)
    problem = LeastSquares(design=rows, t=(y - y.mean()) / y.std(), n_weighted=float(n), flat_intercept=True)
    sets, near = Sets(problem, np.zeros(d), InclusionPrior.of(d)), np.arange(max(j - WINDOW, 0), min(j + WINDOW + 1, d))
    others, log_p, holds = np.setdiff1d(true, near), [], []
    for bits in product([False, True], repeat=len(near)):
        if sum(bits) <= MOST:
            active = np.union1d(others, near[list(bits)])
            log_p.append(logsumexp(sets.log_evidence(sets.spectrum(active), len(active))))
            holds.append(j in active)
    p = np.exp(np.array(log_p) - max(log_p))
    return p @ holds / p.sum()


def neighbours():
    """A line for each data set in which a true feature is not claimed."""
    linear = Linear(1_000, 200, rho=0.95)
    usual = averaging.AGREEMENT
    for seed in range(20):
        X, y, *_, true = linear.draw(seed)
        p = quietly(ARDRegressor().fit, X, y).inclusion_probability_
        for j in [j for j in true if p[j] < 0.9]:
            averaging.AGREEMENT = 0.0  # so that chains use all flips
            long = quietly(ARDRegressor(max_flips=40_000).fit, X, y).inclusion_probability_[j]
            averaging.AGREEMENT = usual
            print(f"seed {seed}: {p[j]:.2f}, long chains {long:.2f}, enumerated {enumerated(X, y, int(j), true):.2f}")


def prior(n=100, d=200, n_sets=60):
    """Share of the weights in their intervals, over data sets whose rate, size of weights and weights are drawn."""
    given, found = InclusionPrior.of(d), []
    p = np.exp(given.share).ravel() / np.exp(given.share).sum()
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        slab, rate = np.unravel_index(rng.choice(p.size, p=p), given.share.shape)
        X, inside = rng.standard_normal((n, d)), rng.random(d) < given.rates[rate]
        w = inside * rng.standard_normal(d) * np.sqrt(given.slabs[slab])
        low, high = quietly(ARDRegressor().fit, X, X @ w + rng.standard_normal(n)).coef_interval(0.9).T
        found.append([given.rates[rate], ((low <= w) & (w <= high)).mean()])
    rates, cover = np.array(found).T
    print(f"all {len(cover)} data sets: {cover.mean():.3f}")
    print(
        f"{(rates > 0.2).sum()} with a rate above 0.2: {cover[rates > 0.2].mean():.3f}; "
        f"others {cover[rates <= 0.2].mean():.3f}"
    )


def dense():
    """A line for each way to fit."""
    (design,) = [each for each in DESIGNS if each.name == "100 of 200"]
    usual = averaging.AGREEMENT
    for title, agreement, given in (
        ("default", usual, {}),
        ("long chains", 0.0, {"max_flips": 30_000}),
        ("rate one half", usual, {"average": True, "min_gain": 1e-9}),
    ):
        averaging.AGREEMENT = agreement
        covers = []
        for data in map(design.draw, range(6)):
            low, high = quietly(ARDRegressor(**given).fit, data.X, data.y).coef_interval(0.9).T
            covers.append(((low <= data.weights) & (data.weights <= high)).mean())
        print(f"100 of 200, {title}: {np.mean(covers):.3f} ± {np.std(covers, ddof=1) / np.sqrt(6):.3f}")
    averaging.AGREEMENT = usual


def log_evidence(K, t):
    """Of labels ±1 under a Gaussian process with this covariance, and an intercept of variance 25, by Laplace."""
    K, f = K + 25.0, np.zeros(len(t))
    for _ in range(20):
        p = expit(f)
        s = np.sqrt(p * (1 - p))
        B = np.eye(len(t)) + s[:, None] * K * s
        b = s**2 * f + (t + 1) / 2 - p
        a = b - s * np.linalg.solve(B, s * (K @ b))
        f = K @ a
    return -0.5 * a @ f - np.logaddexp(0, -t * f).sum() - 0.5 * np.linalg.slogdet(B)[1]


def worlds(folder):
    """Log evidence of both."""
    (data,) = [each for each in gene_sets(folder) if each.name.startswith("leukemia")]
    X, t = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0), 2.0 * data.y - 1
    d = X.shape[1]
    given = InclusionPrior.of(d, None, LOGISTIC_VARIANCE, LOGISTIC_VARIANCE, DENSE)
    wide = [
        share + log_evidence(0.5 * c * X @ X.T, t) for c, share in zip(given.slabs, given.share[:, -1], strict=True)
    ]

    def of(genes):
        log_prior = given.log_size(len(genes))
        likely = np.flatnonzero(given.slabs > 0.1)  # with smaller weights a few genes explain nothing
        part = X[:, genes] @ X[:, genes].T
        return logsumexp([log_prior[i] + log_evidence(given.slabs[i] * part, t) for i in likely])

    best = np.argsort(-np.abs(t @ X))[:100]
    ones = np.array([of([j]) for j in best])
    twos = [of(list(pair)) for pair in combinations(best[np.argsort(-ones)[:30]], 2)]
    both = f"one of 100 genes {logsumexp(ones):.1f}, two of 30 {logsumexp(twos):.1f} nats"
    print(f"dense world {logsumexp(wide):.1f}; {both}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["neighbours", "dense", "prior", "worlds"])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the gene sets")
    given = parser.parse_args()
    if given.only in (None, "neighbours"):
        neighbours()
    if given.only in (None, "dense"):
        dense()
    if given.only in (None, "prior"):
        prior()
    if given.only in (None, "worlds"):
        worlds(given.data)


if __name__ == "__main__":
    main()
