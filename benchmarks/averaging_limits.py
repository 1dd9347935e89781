"""What exact inference would say where averages over models fall short: is it the chains, or the prior?

    OPENBLAS_NUM_THREADS=1 python benchmarks/averaging_limits.py [--only neighbours]

neighbours: AR(1) 0.95 with 1,000×200. Features that are missed: their probability by default, by chains of 40,000
flips, and by enumeration of all sets of up to four of the nine features around each, the other true features being in.
dense: how often 90 % intervals contain weights where 100 of 200 features are true (100 rows, six data sets): as they
are, with chains of 30,000 flips, and with the inclusion rate known.
prior: data drawn from the prior itself, 100×200. How often 90 % intervals of weights contain them.
link: gene sets in ten folds. Scores of the averages with the link of their log-odds, and without it.
worlds: the leukemia genes in ten folds. Log evidence of the dense world (more genes than rows) and of the sparse sets
that chains visit, both by expectation propagation, and what predictions would be with both by their probability.
"""

import argparse
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
from averaging_classes import gene_sets, scores
from designs import DESIGNS
from logistic import DATA
from peers import quietly
from problems import Linear
from scipy.special import expit, logsumexp

from sparsebayes import ARDRegressor, SparseLogisticRegression
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


NODES, SHARES = np.polynomial.hermite_e.hermegauss(40)
SHARES = SHARES / SHARES.sum()
INTERCEPT = 25.0
"""Prior variance of the intercept."""


def tilted(t, mean, variance):
    """Of labels t = ±1 under a normal predictor η: log probability, and mean and variance of η given the label."""
    eta = mean[:, None] + np.sqrt(variance)[:, None] * NODES
    p = expit(t[:, None] * eta) * SHARES
    total = p.sum(axis=1)
    first, second = (p * eta).sum(axis=1) / total, (p * eta**2).sum(axis=1) / total
    return np.log(total), first, second - first**2


class Process:
    """Labels under a Gaussian process, by expectation propagation (Rasmussen and Williams 2006, section 3.6)."""

    def __init__(self, K, t, turns=100, part=0.7):
        self.K, self.tau, self.nu = K + INTERCEPT, np.full(len(t), 1e-3), np.zeros(len(t))
        for _ in range(turns):
            left, shift = self._cavity()
            _, mean, variance = tilted(t, shift / left, 1 / left)
            change = np.maximum(1 / variance - left, 1e-10) - self.tau
            self.tau, self.nu = self.tau + part * change, self.nu + part * (mean / variance - shift - self.nu)
            if np.abs(change).max() < 1e-6:
                break
        left, shift = self._cavity()
        both, nu = left + self.tau, self.nu
        value = tilted(t, shift / left, 1 / left)[0].sum() - np.log(self.factor.diagonal()).sum()
        value += 0.5 * np.log(both / left).sum() + 0.5 * nu @ self.Sigma @ nu
        self.log_evidence = value + 0.5 * ((shift**2 * self.tau / left - 2 * shift * nu - nu**2) / both).sum()

    def _cavity(self):
        """Precision and shift of each row's predictor without its own site."""
        root = np.sqrt(self.tau)
        self.factor = np.linalg.cholesky(np.eye(len(root)) + root[:, None] * self.K * root)
        self.half = np.linalg.solve(self.factor, root[:, None] * self.K)
        self.Sigma = self.K - self.half.T @ self.half
        var = self.Sigma.diagonal()
        return 1 / var - self.tau, self.Sigma @ self.nu / var - self.nu

    def probability(self, across, itself):
        """Of class 1, for rows with these covariances with the labelled rows and with themselves."""
        across = across + INTERCEPT
        inner = np.linalg.solve(self.factor, (np.sqrt(self.tau) * across).T)
        mean = across @ self.nu - inner.T @ (self.half @ self.nu)
        variance = itself + INTERCEPT - (inner**2).sum(axis=0)
        return np.exp(tilted(np.ones(len(across)), mean, variance)[0])


def dense_world(prior, X, t, X_test, least):
    """Log evidence where more than `least` columns are in, and the probabilities of class 1 in test rows there.

    With so many columns inside, a model is the Gaussian process of all columns: only c times their number matters.
    """
    d, rates = X.shape[1], np.flatnonzero(prior.rates * X.shape[1] > least)
    size = np.log(np.multiply.outer(prior.slabs, prior.rates[rates] * d))
    values, predictions = [], []
    for at in np.arange(-3.0, 9.0, 0.5):
        near = np.abs(size - at) < 0.25
        if near.any():
            g = np.exp(at) / d
            process = Process(g * X @ X.T, t)
            values.append(process.log_evidence + logsumexp(prior.share[:, rates][near]))
            predictions.append(process.probability(g * X_test @ X.T, g * (X_test**2).sum(axis=1)))
    return logsumexp(values), np.exp(values - logsumexp(values)) @ predictions


def sparse_world(prior, X, t, model, n_sets=12):
    """Log evidence of the sets that chains visit (Chib 1995): that of some sets, less the log of their probability."""
    fit = model._fits[0]
    sets = Counter()
    for inside, share in zip(fit.draws[:, : len(fit.active)] != 0, fit.share, strict=True):
        sets[tuple(fit.active[inside])] += share
    values, likely = [], np.flatnonzero(prior.slabs > 0.05)  # with smaller weights a few genes explain nothing
    most = sets.most_common(n_sets)
    for active, _ in most:
        part, log_prior = X[:, active] @ X[:, active].T, prior.log_size(len(active))
        values += [log_prior[i] + Process(prior.slabs[i] * part, t).log_evidence for i in likely]
    return logsumexp(values) - np.log(sum(share for _, share in most))


def worlds(folder):
    """A line for each of ten folds, then the scores of each world and of both by their probabilities."""
    (data,) = [each for each in gene_sets(folder) if each.name.startswith("leukemia")]
    X, y, folds = data.draw(0)
    prior = InclusionPrior.of(X.shape[1], None, LOGISTIC_VARIANCE, LOGISTIC_VARIANCE, DENSE)
    p = {name: np.zeros(len(y)) for name in ("averaged", "dense world", "both worlds")}
    for k, (train, test) in enumerate(folds):
        mean, std = X[train].mean(axis=0), X[train].std(axis=0)
        Z, Z_test, t = (X[train] - mean) / std, (X[test] - mean) / std, 2.0 * y[train] - 1
        model = quietly(SparseLogisticRegression().fit, X[train], y[train])
        few, p["averaged"][test] = sparse_world(prior, Z, t, model), model.predict_proba(X[test])[:, 1]
        many, p["dense world"][test] = dense_world(prior, Z, t, Z_test, least=len(train))
        share = expit(many - few)
        p["both worlds"][test] = share * p["dense world"][test] + (1 - share) * p["averaged"][test]
        print(
            f"fold {k}: sparse {few:.1f}, dense {many:.1f} nats; probability of the dense world {share:.2f}", flush=True
        )
    for name, each in p.items():
        found = scores(y, each)
        print(f"{name}: {100 * found['error']:.1f} % wrong, log loss {found['log_loss']:.3f}")


def link(folder):
    """Two lines for each gene set."""
    for data in gene_sets(folder):
        X, y, folds = data.draw(0)
        p, slopes = np.zeros((2, len(y))), []
        for train, test in folds:
            model = quietly(SparseLogisticRegression().fit, X[train], y[train])
            (a, b), odds = model.link_[0], model.decision_function(X[test])
            p[:, test] = expit(odds), expit((odds - b) / a)
            slopes.append(a)
        for name, each in zip((f"link of slope {np.mean(slopes):.2f}", "no link"), p, strict=True):
            found = scores(y, each)
            print(
                f"{data.name}, {name}: {100 * found['error']:.1f} % wrong, log loss {found['log_loss']:.3f}, "
                f"calibration error {found['calibration']:.3f}",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["neighbours", "dense", "prior", "link", "worlds"])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the gene sets")
    given = parser.parse_args()
    if given.only in (None, "neighbours"):
        neighbours()
    if given.only in (None, "dense"):
        dense()
    if given.only in (None, "prior"):
        prior()
    if given.only in (None, "link"):
        link(given.data)
    if given.only in (None, "worlds"):
        worlds(given.data)


if __name__ == "__main__":
    main()
