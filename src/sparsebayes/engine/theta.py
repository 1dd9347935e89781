"""Weights θ of the inputs inside a kernel, found together with the vectors (docs/mathematics.md, section 5).

For fixed centres the log evidence is a smooth function of θ ≥ 0 and of the scales of the model, and is maximised by its
gradient (engine/evidence_gradient.py). Which centres are worth keeping changes with θ; so maximisation and search
alternate. A feature that does not bring its price is dropped (`ThetaSearch.prune`). There are many maxima, and a higher
one does not always predict better; so several starts are made, and their results are compared by a score that charges
for all that was chosen, features and vectors.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sparsebayes.core.linalg import factorise
from sparsebayes.core.prices import PerUnit, worth_at
from sparsebayes.core.scales import TINY
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.core.weighted_kernels import WeightedKernel
from sparsebayes.engine.evidence_gradient import Slopes, maximise_evidence
from sparsebayes.engine.loop import Callback, Info, Settings, Trace, iterate
from sparsebayes.engine.width import VectorFit, choice_price

STARTS = (1.4, 0.7, 0.35, 2.8, 5.6)
"""Mean exponents E[Σθ(x - z)²] of the kernels to start with, in this order.

They cover kernels from nearly linear (0.35) to local (5.6), in factors of two."""
VECTOR_PRICE = 0.1
"""Nats that a vector must bring. In a wide kernel many columns are nearly the same, and some would stay that bring
nothing: without a price a search takes 1.5 times as long (Friedman #1). The errors at 0, 0.03, 0.1, 0.3 and 1 nat are
0.79, 0.79, 0.77, 0.82 and 0.84, with standard errors of 0.03."""
MAX_STEPS = 300
"""Most steps of one maximisation over θ and the scales. Half of them end within 60 steps (Friedman #1 with 150 rows and
10 inputs); one in six reaches the limit, and the next turn continues it."""
TRIAL_STEPS = 25
"""Most steps of a maximisation that only tells whether features can be dropped. On Friedman #1 and on rings of two
classes 20, 50, 100 and 300 steps keep the same features, and 300 steps take three times as long as 20."""
MAX_ROUNDS = 30
"""Most turns of maximisation and search in one refinement. On the same data one is usual, and nine were the most."""


class KernelModel(Protocol):
    """A model on kernel columns, for which feature weights are sought."""

    def search(self, K: FloatArray, near: VectorFit | None) -> VectorFit:
        """The best model on these columns, from a fit on similar columns or from nothing."""

    def evidence(self, K: FloatArray, scales: FloatArray) -> Slopes:
        """Objective of the model that keeps exactly these columns, and its slopes."""


@dataclass(frozen=True)
class ThetaFit:
    """A model with feature weights."""

    theta: FloatArray
    """Weights of all (standardised) inputs; 0 for a dropped one."""
    fit: VectorFit

    @property
    def kept(self) -> BoolArray:
        """Which inputs have a weight."""
        return np.asarray(self.theta > 0)


@dataclass(frozen=True)
class ThetaSearch:
    """A search problem: rows and centres with standardised inputs, a kernel, the model on its columns, and a price."""

    kernel: WeightedKernel
    X: FloatArray
    Z: FloatArray
    model: KernelModel
    price: float
    """Nats that a feature must bring."""
    n: float
    """Rows (by weight) that determine the noise."""
    tol: float
    """A turn of maximisation and search that improves by fewer nats is the last."""
    callback: Callback | None = None

    @property
    def varying(self) -> BoolArray:
        """Inputs that are not constant; in standard units a constant input is all zero."""
        return np.asarray(self.X.any(axis=0))

    def columns(self, theta: FloatArray, centres: FloatArray) -> FloatArray:
        """Kernel columns of some centres."""
        kept = theta > 0
        return self.kernel(self.X[:, kept], centres[:, kept], theta[kept]).value

    def search_vectors(self, theta: FloatArray, near: VectorFit | None = None) -> ThetaFit:
        """The best model with these feature weights."""
        return ThetaFit(theta, self.model.search(self.columns(theta, self.Z), near))

    def initialise(self, theta: FloatArray, near: VectorFit | None) -> ThetaFit:
        """A first model with these weights: searched for from nothing, and from `near` if that is better.

        A search from nothing in a wide kernel can get stuck in a nearly linear model; the vectors of a narrower kernel
        do not.
        """
        first = self.search_vectors(theta)
        return first if near is None else max(first, self.search_vectors(theta, near), key=_objective)

    def maximise_theta(
        self, at: ThetaFit, free: BoolArray, steps: int = MAX_STEPS, stop_at: float = np.inf
    ) -> ThetaFit:
        """Weights of the free features and scales of largest evidence on the same centres; other weights become 0."""
        X, Z, fit = self.X[:, free], self.Z[np.ix_(at.fit.active, free)], at.fit

        def design(theta: FloatArray) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
            shape = self.kernel(X, Z, theta)
            return shape.value, lambda slope: self.kernel.gradient(X, Z, shape, slope)

        start = at.theta[free]
        unit = float(start.mean()) if start.any() else 1.0
        limits: list[tuple[float, float | None]] = [(0.0, None)] * len(start)
        top = maximise_evidence(
            self.model.evidence, design, start, limits, fit.scales, len(Z), unit=unit, steps=steps, stop_at=stop_at
        )
        theta = np.zeros(len(at.theta))
        theta[free] = top.parameters
        return ThetaFit(theta, replace(fit, objective=top.value, scales=top.scales))

    def refine(self, start: ThetaFit, free: BoolArray, trace: Trace) -> ThetaFit:
        """Maximise, prune and search in turns until a turn improves by no more than `tol`.

        Features are dropped before vectors are added: with many useless features a search would fit single rows.
        """
        free, needed = free.copy(), np.zeros(len(start.theta), dtype=bool)

        def step(at: ThetaFit) -> tuple[ThetaFit, Info]:
            top = self.prune(self.maximise_theta(at, free), needed) if len(at.fit.active) else at
            if not top.kept.any():
                return at, Info(at.fit.objective, 0.0, len(at.fit.active), action="weigh")
            there = self.search_vectors(top.theta, top.fit)
            if self.criterion(there) <= self.criterion(at) + self.tol:
                # The search from the old centres may be stuck where one from nothing is not.
                there = max(there, self.search_vectors(top.theta), key=self.criterion)
            rise = self.criterion(there) - self.criterion(at)
            free[:] = self.free_features(there)
            info = Info(at.fit.objective, max(rise, 0.0), len(there.fit.active), action="weigh")
            return max(there, at, key=self.criterion), info

        end, _ = iterate(start, step, trace=trace, settings=Settings(self.tol, MAX_ROUNDS, self.callback))
        return end

    def free_features(self, at: ThetaFit) -> BoolArray:
        """Features whose weight is still estimated: those with a weight or, where features have no price, all."""
        return at.kept if self.price > 0 else self.varying

    def prune(self, at: ThetaFit, needed: BoolArray) -> ThetaFit:
        """Drop the features that do not bring their price, given the others; mark the others in `needed`, in place.

        What a feature is worth is the loss after it has gone and the others have been refitted. The evidence without
        it, all else unchanged, gives the order in which to try. Features that each seem worthless are tried together,
        at most half of all at a time, so that the others can take over. Where a group loses more than its members would
        one by one, as copies of each other do, half of it is tried.
        """
        while self.price > 0 and len(at.fit.active) and (doubtful := np.flatnonzero(at.kept & ~needed)).size:
            losses = self._losses(at, doubtful)
            order = np.argsort(losses)
            cheap = int((losses < self._price_saved(at, 1)).sum())
            size = min(max(cheap, 1), int(at.kept.sum()) // 2)
            while size and (there := self._without(at, doubtful[order[:size]], losses[order[:size]].sum())) is None:
                size //= 2
            if size:
                assert there is not None
                at = there
            else:
                needed[doubtful[order[0]]] = True
        return at

    def _losses(self, at: ThetaFit, features: IntArray) -> FloatArray:
        """Evidence lost when one weight is set to 0 and nothing else changes, for each of some features."""
        kept = np.flatnonzero(at.kept)
        Z, each = self.Z[np.ix_(at.fit.active, kept)], np.searchsorted(kept, features)
        left = self.kernel.leaving_out(self.X[:, kept], Z, at.theta[kept], each)
        return at.fit.objective - np.array([self.model.evidence(K, at.fit.scales).value for K in left])

    def _without(self, at: ThetaFit, group: IntArray, expected: float) -> ThetaFit | None:
        """The model without some features, if it loses less than one of them costs, or than all cost and `expected`."""
        stop_at = at.fit.objective - min(self._price_saved(at, len(group)), max(self._price_saved(at, 1), expected))
        theta = at.theta.copy()
        theta[group] = 0.0
        there = self.maximise_theta(replace(at, theta=theta), theta > 0, TRIAL_STEPS, stop_at)
        # Without any weight all columns are constant, and no maximisation can leave that point.
        return there if there.kept.any() and there.fit.objective >= stop_at else None

    def _price_saved(self, at: ThetaFit, n_dropped: int) -> float:
        """What some features of a model cost."""
        n_features, n_vectors = int(at.kept.sum()), len(at.fit.active)
        return self.total_price(n_features, n_vectors) - self.total_price(n_features - n_dropped, n_vectors)

    def total_price(self, n_features: int, n_vectors: int) -> float:
        """Nats asked for the features: as for linear ones (core/prices.py), which share the rows with the vectors."""
        return self.price * n_features * PerUnit(self.price, self.n).factor(n_features + n_vectors)

    def score(self, at: ThetaFit) -> float:
        """The number that models are compared by: the objective less the price of all features and vectors.

        The evidence does not know among how many columns the vectors were chosen, and a narrower kernel has more
        different columns (see `choice_price`).
        """
        return self._charged(at, int(at.kept.sum()))

    def size_score(self, at: ThetaFit) -> float:
        """Score when only the overall size of θ was fitted; that is charged as one feature."""
        return self._charged(at, 1)

    def _charged(self, at: ThetaFit, n_features: int) -> float:
        kept = at.kept
        X, weight = self.X[:, kept], at.theta[kept]
        each = choice_price(X, lambda X, Z: self.kernel(X, Z, weight).value) if kept.any() else 0.0
        n_vectors = len(at.fit.active)
        return at.fit.objective - self.total_price(n_features, n_vectors) - each * n_vectors

    def criterion(self, at: ThetaFit) -> float:
        """What a refinement increases: the score or, where features have no price, the evidence."""
        return self.score(at) if self.price > 0 else at.fit.objective

    def run(self, start: ThetaFit, trace: Trace) -> ThetaFit:
        """A maximum that neither a refinement nor the return of dropped features improves."""
        best = self.refine(start, self.varying, trace)
        while self.price > 0 and len(best.fit.active):
            there = self.refine(best, self.varying, trace)
            if self.score(there) <= self.score(best) + self.tol:
                break
            best = there
        return best


def _objective(at: ThetaFit) -> float:
    return at.fit.objective


def relevance(J: FloatArray, alpha: FloatArray, theta: FloatArray) -> FloatArray:
    """γ of kept features in [0, 1]: how well the data determine each weight, by the rule of s and q.

    J has the slopes of the linear predictor with respect to the vectors' weights (with precisions α) and then to θ,
    rows multiplied by the root of their precision. Each other θ is given its own size as prior scale; then
    1/Σ_kk = β_k + s_k, the weight's z-score has the square r = s_k θ_k², and γ_k = 1 - 1/r at the best β_k.
    """
    beta = theta**-2.0
    Sigma = factorise(J.T @ J + np.diag(np.append(alpha, beta))).solve(np.eye(J.shape[1])[:, len(alpha) :])
    r = theta**2 / np.diag(Sigma[len(alpha) :]) - 1
    return np.maximum(1 - 1 / np.maximum(r, 1.0), 0.0)


def univariate_share(X: FloatArray, t: FloatArray, weight: FloatArray, n: float, price: float) -> FloatArray:
    """Weights, of sum one, of the features that are worth their price alone, as linear predictors of a target.

    F is the squared t-value of a feature's slope, and plays the part of r = q²/s. Weights are proportional to √(F - 1).
    Weights proportional to F - 1, the prior variance of largest evidence, would leave all to a few features; equal
    weights would leave it to the many that hardly pass. Inputs and target are in standard units.
    """
    n = max(n, 1.0)  # weights may add up to less than a row, which says nothing of any feature
    square = (X.T @ (weight * t) / weight.sum()) ** 2
    F = (n - 1) * square / np.maximum(1 - square, 1 / n)
    pays = np.array([worth_at(float(f)) > price for f in F], dtype=bool)
    size = np.where(pays, np.sqrt(np.maximum(F - 1, 0.0)), 0.0)
    return np.asarray(size / max(size.sum(), TINY))


def sized_starts(share: FloatArray) -> list[FloatArray]:
    """Weights proportional to `share` (of sum one) in all sizes of `STARTS`.

    The mean of (x - z)² is 2 for standardised inputs, so weights of sum c/2 have the mean exponent c.
    """
    return [c / 2 * share for c in STARTS]


def random_starts(n_features: int, n_starts: int, rng: np.random.RandomState) -> list[FloatArray]:
    """Weights of random size, within those of `STARTS`, and of random share."""
    starts = []
    for _ in range(n_starts):
        share = rng.standard_exponential(n_features)
        starts.append(np.exp(rng.uniform(np.log(min(STARTS)), np.log(max(STARTS)))) * share / (2 * share.sum()))
    return starts


class Start(Protocol):
    """A way to a first model; `ThetaSearch` itself is one."""

    def initialise(self, theta: FloatArray, near: VectorFit | None) -> ThetaFit:
        """A first model with weights near θ; `near` is the first model of the start before."""


def run_starts(search: ThetaSearch, starts: Iterable[FloatArray], trace: Trace, first: Start) -> list[ThetaFit]:
    """The results of all starts."""
    ends, near = [], None
    for start in starts:
        at = first.initialise(start * search.varying, near)
        near = at.fit
        ends.append(search.run(at, trace))
    return ends


def best_theta(
    search: ThetaSearch, share: FloatArray, starts: Iterable[FloatArray], trace: Trace, first: Start, tol: float
) -> tuple[ThetaFit, FloatArray]:
    """The best of all starts, refined to `tol`, or the best θ proportional to `share`; and the scores of the starts.

    Individual weights must be worth more than one common size of `share`: by ½ log n for each weight beyond the first,
    which is the cost of a parameter that the rows determine. With no fewer features than rows, the rows cannot
    determine individual weights; they are then not tried unless `share` is all zero.
    """
    sizes = sized_starts(share) if share.any() else []
    common = max((search.search_vectors(theta) for theta in sizes), key=search.size_score, default=None)
    if common is not None and search.varying.sum() >= search.n:
        return common, np.empty(0)
    ends = run_starts(search, starts, trace, first)
    scores = np.array([search.score(end) for end in ends])
    nothing = search.search_vectors(np.zeros(len(share)))
    individual = max(ends[int(np.argmax(scores))], nothing, key=search.score)
    weights_cost = 0.5 * np.log(max(search.n, 1.0)) * (individual.kept.sum() - 1)
    if common is not None and search.score(individual) - weights_cost <= search.size_score(common):
        return common, scores
    return replace(search, tol=tol).refine(individual, search.free_features(individual), trace), scores
