"""Weights of the inputs inside a kernel, found together with the vectors (docs/mathematics.md, section 5).

For fixed centres the log evidence is a smooth function of the feature weights θ ≥ 0 and of the scales of the model, so
it is climbed by its gradient (engine/evidence_gradient.py). Which centres are worth keeping changes with θ; so climb
and search take turns. A feature that does not bring its price leaves: see `Weigher.pruned`. There are many maxima, and
a higher one does not always predict better; so several starts are made, and their ends are compared by a score that
charges for all that was chosen, features and vectors.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np

from sparsebayes.core.linalg import factorise
from sparsebayes.core.prices import PerUnit, worth_at
from sparsebayes.core.scales import TINY
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.core.weighted import WeightedKernel
from sparsebayes.engine.evidence_gradient import Slopes, maximise_evidence
from sparsebayes.engine.loop import Callback, Info, Settings, Trace, iterate
from sparsebayes.engine.width import Fit, choice_price

Model = TypeVar("Model")

STARTS = (1.4, 0.7, 0.35, 2.8, 5.6)
"""First weights are these, halved, times the share of a (standardised) input: then typical exponents are such."""
LEAST = 0.1
"""Nats that a vector must bring: wide kernels find many that bring nothing."""
STEPS = 300
"""Steps of a climb."""
TRIAL = 50
"""Steps of a climb that finds out what a feature is worth."""
ROUNDS = 30
"""Turns of climb and search that one start may take."""


class Block(Protocol[Model]):
    """The model on kernel columns whose inputs are to be weighed."""

    def search(self, K: FloatArray, near: Fit[Model] | None) -> Fit[Model]:
        """The best model on these columns, from a fit on similar ones or from nothing."""

    def evidence(self, K: FloatArray, scales: FloatArray) -> Slopes:
        """Objective of a model that keeps just these columns, and its slopes."""


@dataclass(frozen=True)
class Weighed(Generic[Model]):
    """A model with feature weights."""

    theta: FloatArray
    """Weights of all (standardised) inputs; 0 is dropped."""
    fit: Fit[Model]

    @property
    def kept(self) -> BoolArray:
        """Which inputs have a weight."""
        return np.asarray(self.theta > 0)


@dataclass(frozen=True)
class Weigher(Generic[Model]):
    """A problem: rows and centres with standardised inputs, a kernel, the model on its columns, and a price."""

    kernel: WeightedKernel
    X: FloatArray
    Z: FloatArray
    block: Block[Model]
    price: float
    """Nats that a feature must bring."""
    n: float
    """Rows (by weight) that say what the noise is."""
    tol: float
    callback: Callback | None = None

    @property
    def varied(self) -> BoolArray:
        """Inputs that are not constant, in standard units: a constant one has nothing to weigh."""
        return np.asarray(self.X.any(axis=0))

    def columns(self, theta: FloatArray, centres: FloatArray) -> FloatArray:
        """Kernel columns of some centres."""
        kept = theta > 0
        return self.kernel(self.X[:, kept], centres[:, kept], theta[kept]).value

    def searched(self, theta: FloatArray, near: Fit[Model] | None = None) -> Weighed[Model]:
        """The best model with these weights."""
        return Weighed(theta, self.block.search(self.columns(theta, self.Z), near))

    def begun(self, theta: FloatArray, near: Fit[Model] | None) -> Weighed[Model]:
        """A first model with these weights: from nothing, or from the vectors of a narrower kernel if that is better.

        A search from nothing in a wide kernel can get stuck in a nearly linear model.
        """
        first = self.searched(theta)
        return first if near is None else max(first, self.searched(theta, near), key=_objective)

    def climbed(
        self, at: Weighed[Model], free: BoolArray, steps: int = STEPS, enough: float = np.inf
    ) -> Weighed[Model]:
        """Weights of the free features and scales of largest evidence on the same centres; other features go."""
        X, Z, fit = self.X[:, free], self.Z[np.ix_(at.fit.active, free)], at.fit

        def design(theta: FloatArray) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
            shape = self.kernel(X, Z, theta)
            return shape.value, lambda slope: self.kernel.gradient(X, Z, shape, slope)

        start = at.theta[free]
        unit = float(start.mean()) if start.any() else 1.0
        limits: list[tuple[float, float | None]] = [(0.0, None)] * len(start)
        top = maximise_evidence(
            self.block.evidence, design, start, limits, fit.scales, len(Z), unit=unit, steps=steps, stop_at=enough
        )
        theta = np.zeros(len(at.theta))
        theta[free] = top.parameters
        return Weighed(theta, replace(fit, objective=top.value, scales=top.scales))

    def settled(self, start: Weighed[Model], free: BoolArray, trace: Trace) -> Weighed[Model]:
        """Climb, prune and search in turns until a turn brings no more than `tol`.

        Features go before vectors come: with many useless features in play a search would find vectors for single rows.
        """
        free, needed = free.copy(), np.zeros(len(start.theta), dtype=bool)

        def turn(at: Weighed[Model]) -> tuple[Weighed[Model], Info]:
            top = self.pruned(self.climbed(at, free), needed) if len(at.fit.active) else at
            if not top.kept.any():
                return at, Info(at.fit.objective, 0.0, len(at.fit.active), action="weigh")
            there = self.searched(top.theta, top.fit)
            if self.standing(there) <= self.standing(at) + self.tol:
                # The search from the old centres may be stuck where one from nothing is not.
                there = max(there, self.searched(top.theta), key=self.standing)
            rise = self.standing(there) - self.standing(at)
            free[:] = self.open_to(there)
            info = Info(at.fit.objective, max(rise, 0.0), len(there.fit.active), action="weigh")
            return max(there, at, key=self.standing), info

        end, _ = iterate(start, turn, trace=trace, settings=Settings(self.tol, ROUNDS, self.callback))
        return end

    def open_to(self, at: Weighed[Model]) -> BoolArray:
        """Features that go on being weighed: those that have a weight or, where they have no price, all."""
        return at.kept if self.price > 0 else self.varied

    def pruned(self, at: Weighed[Model], needed: BoolArray) -> Weighed[Model]:
        """Without the features that do not bring their price, given the others; `needed` learns which do.

        What a feature is worth is what is really lost when it goes and the others have taken over. The evidence without
        it, all else unchanged, says in which order to try; those that each seem worthless are tried together (though no
        more than half of all, so that the others can take over), and half of them where that loses more than they would
        one by one, as copies of each other do.
        """
        while self.price > 0 and len(at.fit.active) and (doubtful := np.flatnonzero(at.kept & ~needed)).size:
            losses = self._losses(at, doubtful)
            order = np.argsort(losses)
            cheap = int((losses < self._saved(at, 1)).sum())
            size = min(max(cheap, 1), int(at.kept.sum()) // 2)
            while size and (there := self._without(at, doubtful[order[:size]], losses[order[:size]].sum())) is None:
                size //= 2
            if size:
                assert there is not None
                at = there
            else:
                needed[doubtful[order[0]]] = True
        return at

    def _losses(self, at: Weighed[Model], features: IntArray) -> FloatArray:
        """Evidence lost when each of some weights is set to 0 and nothing else changes."""
        kept = np.flatnonzero(at.kept)
        Z, each = self.Z[np.ix_(at.fit.active, kept)], np.searchsorted(kept, features)
        left = self.kernel.leaving_out(self.X[:, kept], Z, at.theta[kept], each)
        return at.fit.objective - np.array([self.block.evidence(K, at.fit.scales).value for K in left])

    def _without(self, at: Weighed[Model], group: IntArray, expected: float) -> Weighed[Model] | None:
        """The model without some features, if that loses less than one costs, or than all do and was expected."""
        enough = at.fit.objective - min(self._saved(at, len(group)), max(self._saved(at, 1), expected))
        theta = at.theta.copy()
        theta[group] = 0.0
        there = self.climbed(replace(at, theta=theta), theta > 0, TRIAL, enough)
        # Without any weight left all columns are constant: a climb that leaps there cannot leave again.
        return there if there.kept.any() and there.fit.objective >= enough else None

    def _saved(self, at: Weighed[Model], n_dropped: int) -> float:
        """What so many features of a model cost."""
        n_features, n_vectors = int(at.kept.sum()), len(at.fit.active)
        return self.total_price(n_features, n_vectors) - self.total_price(n_features - n_dropped, n_vectors)

    def total_price(self, n_features: int, n_vectors: int) -> float:
        """Nats asked of a model: as of linear features (core/prices.py), which share the rows with the vectors."""
        return self.price * n_features * PerUnit(self.price, self.n).factor(n_features + n_vectors)

    def score(self, at: Weighed[Model]) -> float:
        """What models are compared by: the objective less the price of all that was chosen, features and vectors.

        The evidence of a choice of vectors does not know among how many they were chosen, and a kernel that narrows
        finds ever more (see `choice_price`).
        """
        return self._charged(at, int(at.kept.sum()))

    def size_score(self, at: Weighed[Model]) -> float:
        """The same of a model of whose weights only the size was chosen, which counts as one feature."""
        return self._charged(at, 1)

    def _charged(self, at: Weighed[Model], n_features: int) -> float:
        kept = at.kept
        X, weight = self.X[:, kept], at.theta[kept]
        each = choice_price(X, lambda X, Z: self.kernel(X, Z, weight).value) if kept.any() else 0.0
        n_vectors = len(at.fit.active)
        return at.fit.objective - self.total_price(n_features, n_vectors) - each * n_vectors

    def standing(self, at: Weighed[Model]) -> float:
        """What a turn is to raise: the score or, where features have no price, the plain evidence."""
        return self.score(at) if self.price > 0 else at.fit.objective

    def ascended(self, start: Weighed[Model], trace: Trace) -> Weighed[Model]:
        """A maximum that no turn, no departure and no return of features improves."""
        best = self.settled(start, self.varied, trace)
        while self.price > 0 and len(best.fit.active):
            there = self.settled(best, self.varied, trace)
            if self.score(there) <= self.score(best) + self.tol:
                break
            best = there
        return best


def _objective(at: Weighed[Model]) -> float:
    return at.fit.objective


def relevance(J: FloatArray, alpha: FloatArray, theta: FloatArray) -> FloatArray:
    """γ of kept features, by the rule of s and q: what the data says of each weight, as a share.

    J has the slopes of the linear predictor in the vectors' weights (whose precisions are α) and then in θ, rows
    multiplied by the root of their precision. Each other weight is given its own size as prior scale; then
    1/Σ_kk = β_k + s_k, the weight's z-score has the square r = s_k θ_k², and γ_k = 1 - 1/r at the best β_k.
    """
    beta = theta**-2.0
    Sigma = factorise(J.T @ J + np.diag(np.append(alpha, beta))).solve(np.eye(J.shape[1])[:, len(alpha) :])
    r = theta**2 / np.diag(Sigma[len(alpha) :]) - 1
    return np.maximum(1 - 1 / np.maximum(r, 1.0), 0.0)


def weights_alone(X: FloatArray, t: FloatArray, weight: FloatArray, n: float, price: float) -> FloatArray:
    """Weights of the features that are worth the price alone, as linear predictors of a target; their sum is one.

    F is the squared t-value of a feature's slope, and plays the part of r = q²/s. Weights go with √(F - 1): with F - 1,
    which is the prior variance that the evidence would choose, a few features have all the say, and with equal weights
    the many that hardly pass. Inputs and target are in standard units.
    """
    square = (X.T @ (weight * t) / weight.sum()) ** 2
    F = (n - 1) * square / np.maximum(1 - square, 1 / n)
    pays = np.array([worth_at(float(f)) > price for f in F], dtype=bool)
    size = np.where(pays, np.sqrt(np.maximum(F - 1, 0.0)), 0.0)
    return np.asarray(size / max(size.sum(), TINY))


def first_weights(share: FloatArray) -> list[FloatArray]:
    """Weights of several sizes to set out from, with the given share for each feature."""
    return [c / 2 * share for c in STARTS]


def random_weights(n_features: int, n_starts: int, rng: np.random.RandomState) -> list[FloatArray]:
    """Weights whose size and distribution over the features are drawn."""
    starts = []
    for _ in range(n_starts):
        share = rng.standard_exponential(n_features)
        starts.append(np.exp(rng.uniform(np.log(min(STARTS)), np.log(max(STARTS)))) * share / (2 * share.sum()))
    return starts


class Beginning(Protocol[Model]):
    """A way to a first model."""

    def begun(self, theta: FloatArray, near: Fit[Model] | None) -> Weighed[Model]:
        """A model to set out from, with weights near θ; `near` is what the start before began with."""


def weigh(
    weigher: Weigher[Model], starts: Iterable[FloatArray], trace: Trace, beginning: Beginning[Model]
) -> list[Weighed[Model]]:
    """The ends of all starts; the weigher's own beginning is a search."""
    ends, near = [], None
    for start in starts:
        first = beginning.begun(start * weigher.varied, near)
        near = first.fit
        ends.append(weigher.ascended(first, trace))
    return ends


def best_weights(
    weigher: Weigher[Model],
    share: FloatArray,
    starts: Iterable[FloatArray],
    trace: Trace,
    beginning: Beginning[Model],
    tol: float,
) -> tuple[Weighed[Model], FloatArray]:
    """The best of all starts, settled to `tol`, or of weights that have the given shares; and the scores of the starts.

    Features that are weighed together must be worth more than those that have something to say alone, with one size
    for all of their weights: by ½ log n for each, which is what a parameter costs that the rows have to determine. With
    no fewer features than rows, which then do not tell how features share the work, it is not even tried unless none
    has anything to say alone.
    """
    sizes = first_weights(share) if share.any() else []
    alone = max((weigher.searched(theta) for theta in sizes), key=weigher.size_score, default=None)
    if alone is not None and weigher.varied.sum() >= weigher.n:
        return alone, np.empty(0)
    ends = weigh(weigher, starts, trace, beginning)
    scores = np.array([weigher.score(end) for end in ends])
    nothing = weigher.searched(np.zeros(len(share)))
    together = max(ends[int(np.argmax(scores))], nothing, key=weigher.score)
    weights_cost = 0.5 * np.log(weigher.n) * (together.kept.sum() - 1)
    if alone is not None and weigher.score(together) - weights_cost <= weigher.size_score(alone):
        return alone, scores
    return replace(weigher, tol=tol).settled(together, weigher.open_to(together), trace), scores
