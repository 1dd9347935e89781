"""Several classes at once: multinomial logistic regression with a joint softmax (docs/mathematics.md, section 8).

The model and its curvature are in `core.multinomial`. The C intercepts add up to zero, because the softmax does not
see a common shift; the integral over them is taken in the C - 1 log-odds against any one class (whichever: it is the
same), so that two classes have the evidence of the logistic model with a flat intercept.

The price is charged per *feature*: its weights in the C classes are substitutes for each other (with two classes
exactly so), and each alone would look worthless beside the others. A feature is worth the evidence that all its weights
bring together, each at its best precision, given the other features; within a feature that pays, plain evidence decides
which classes use it. The price that leaves pure noise empty is log(D (C - 1)): C - 1 is what a feature's weights can
tell apart, and for two classes it is the log D of the other models.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert
from scipy.special import logsumexp

from sparsebayes.core.evidence import log_hyper_prior
from sparsebayes.core.linalg import Factor, factorise
from sparsebayes.core.multinomial import ByRows, ByWeights, ClassDesigns, ClassRows, Inverse, SoftmaxPosterior
from sparsebayes.core.scales import ScaleRule, ard_candidate, gain
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.design import Design
from sparsebayes.engine.batch import PRICE_INFLATION, PRUNE_BELOW
from sparsebayes.engine.loop import Info, Settings, Trace, iterate
from sparsebayes.engine.view import HALVINGS, NEWTON_STEPS

ROUNDING = 1e-15
"""Share of the objective that a Newton step may seem to lose by rounding."""
SETTLED = 1e-16
"""Newton's method ends when a step promises less than this part of the objective; it is then 1e-8 deviations long."""
EXTREME = 1e12
"""Precisions stay within this factor of the most that the data could say about a weight: beyond, γ is 0 or 1 but for
1e-12 and nothing changes any more."""


class Mode(NamedTuple):
    """Where Newton's method ended, with what it had factorised there (see `SoftmaxProblem.mode`)."""

    w: FloatArray
    level: FloatArray
    log_evidence: float
    inverse: Inverse
    X: FloatArray
    S: Factor
    U: FloatArray
    settled: bool


@dataclass(frozen=True)
class SoftmaxProblem:
    """Rows, classes t in 0 … C-1 and row weights > 0; and the prior of the weights.

    `b` has one entry per column; one shared precision takes the first. Weights that the rows carry are not looked at.
    """

    rows: Design
    t: IntArray
    n_classes: int
    weight: FloatArray
    flat_intercept: bool
    price: float
    a: float
    b: FloatArray
    least_alpha: float = 0.0

    def value(self, eta: FloatArray) -> tuple[float, FloatArray]:
        """Log p(t | η) and the class probabilities."""
        total = logsumexp(eta, axis=1)
        fit = self.weight @ (np.take_along_axis(eta, self.t[:, None], axis=1)[:, 0] - total)
        return float(fit), np.exp(eta - total[:, None])

    def residual(self, p: FloatArray) -> FloatArray:
        """Gradient of log p(t | η) in η: weight (1[t = c] - p_c)."""
        return self.weight[:, None] * (np.eye(self.n_classes)[self.t] - p)

    def mode(self, design: ClassDesigns, alpha: FloatArray, w: FloatArray, level: FloatArray) -> Mode:
        """Newton's method with step halving to the maximum of log p(t | w) - ½ wᵀAw.

        Where all rows are saturated a flat intercept has no curvature to go by; from there it starts anew at zero.
        """
        U = helmert(self.n_classes).T if self.flat_intercept else np.zeros((self.n_classes, 0))
        wide = len(alpha) > len(self.t)
        K = design.outers(1 / alpha) if wide else []
        value, p = self._penalised(design, alpha, w, level)
        for _ in range(NEWTON_STEPS):
            inverse: Inverse = (
                ByRows(design, p, self.weight, alpha, K) if wide else ByWeights(design, p, self.weight, alpha)
            )
            # The intercepts level = U z come last: X = P⁻¹ΦᵀWU and the Schur complement S = UᵀWU - UᵀWΦX.
            X, left = inverse.eliminate(U)
            X, S = X.T, factorise(left)
            residual = self.residual(p)
            slope, level_slope = design.project(residual) - alpha * w, U.T @ residual.sum(axis=0)
            z = S.solve(level_slope - X @ slope)
            step = inverse.solve(slope) - z @ X
            settled = bool(slope @ step + level_slope @ z <= 2 * SETTLED * (1 + abs(value)))
            if settled:
                break
            for length in 0.5 ** np.arange(HALVINGS):
                there = w + length * step, level + length * (U @ z)
                new_value, new_p = self._penalised(design, alpha, *there)
                if new_value >= value - ROUNDING * (1 + abs(value)):
                    break
            else:
                if not w.any():
                    break
                there = np.zeros_like(w), np.zeros_like(level)
                new_value, new_p = self._penalised(design, alpha, *there)
            (w, level), value, p = there, new_value, new_p
        evidence = value + 0.5 * (float(np.log(alpha).sum()) + inverse.logdet - S.logdet)
        if self.flat_intercept:
            evidence += 0.5 * float((self.n_classes - 1) * np.log(2 * np.pi) + np.log(self.n_classes))
        return Mode(w, level, evidence, inverse, X, S, U, settled)

    def _penalised(
        self, design: ClassDesigns, alpha: FloatArray, w: FloatArray, level: FloatArray
    ) -> tuple[float, FloatArray]:
        fit, p = self.value(design.predict(w) + level)
        return fit - 0.5 * float(alpha @ w**2), p

    def posterior(self, design: ClassDesigns, alpha: FloatArray, w: FloatArray, level: FloatArray) -> SoftmaxPosterior:
        """The Laplace approximation at the mode; its curvature is that of Newton's last, vanishing step."""
        mode = self.mode(design, alpha, w, level)
        diagonal, own, joint = mode.inverse.roots()
        joint_level = np.vstack([np.zeros((len(joint), self.n_classes)), -mode.S.half_solve(mode.U.T)])
        joint = np.vstack([joint, mode.S.half_solve(mode.X)])
        explained = (own**2).sum(axis=0) - (joint**2).sum(axis=0)
        gamma = np.clip(1 - alpha * diagonal + alpha * explained, 0.0, 1.0)
        middle = mode.w, mode.level, diagonal - explained, gamma
        end = mode.log_evidence, max(mode.inverse.jitter, mode.S.jitter), mode.settled
        return SoftmaxPosterior(design, *middle, diagonal, own, joint, joint_level, *end)

    def worth(self, posterior: SoftmaxPosterior, alpha: FloatArray) -> FloatArray:
        """Nats that each feature's weights bring together, each at its best precision, given the other features.

        With Σ the covariance of the feature's own weights, S = Σ⁻¹ - A and q = Σ⁻¹μ are for them what s and q are for
        one weight. From an empty feature on, the best change of a single precision is made, C + 2 times: each class can
        enter, and two changes are left to correct the first.
        """
        place, Sigma = posterior.feature_blocks(self.rows.n_columns)
        some = np.flatnonzero((place >= 0).any(axis=1))
        place, C, diagonal = place[some], self.n_classes, np.arange(self.n_classes)
        there, precision = place >= 0, np.linalg.inv(Sigma[some])
        q = (precision @ np.where(there, posterior.w[place], 0.0)[:, :, None])[:, :, 0]
        S = precision - np.eye(C) * np.where(there, alpha[place], 1.0)[:, None, :]
        best, worth, each = np.full(q.shape, np.inf), np.zeros(len(some)), np.arange(len(some))
        for _ in range(C + 2):
            solved = np.linalg.solve(np.eye(C) + S / best[:, None, :], np.dstack([S, q]))
            without = 1 - solved[:, diagonal, diagonal] / best
            s, r = np.maximum(solved[:, diagonal, diagonal], 0.0) / without, solved[:, :, C] / without
            goal = ard_candidate(s, r, self.a, self.b[some, None])
            brings = gain(goal, s, r) - gain(best, s, r)
            c = brings.argmax(axis=1)
            best[each, c] = goal[each, c]
            worth += np.maximum(brings[each, c], 0.0)
        result = np.zeros(self.rows.n_columns)
        result[some] = worth
        return result

    def brings(self, posterior: SoftmaxPosterior, alpha: FloatArray, feature: int) -> float:
        """Evidence that a feature brings as it is: against the mode found without it.

        Where a feature all but separates the classes the curvature at the mode is next to nothing, and so is what
        `worth` makes of the feature; but without it the likelihood would fall.
        """
        rest = posterior.design.features != feature
        without = self.mode(posterior.design.keep(rest), alpha[rest], posterior.w[rest], posterior.level)
        return posterior.log_evidence - without.log_evidence


@dataclass(frozen=True)
class State:
    """What the next iteration needs; which features are worth their price, and which had their return."""

    design: ClassDesigns
    alpha: FloatArray
    w: FloatArray
    level: FloatArray
    paid: BoolArray
    returned: BoolArray
    objective: float = -np.inf


@dataclass(frozen=True)
class SoftmaxFit:
    """A fitted model in the units of the rows as given; C×D arrays, 0 (precision: ∞) for what is gone."""

    coef: FloatArray
    intercept: FloatArray
    active: BoolArray
    alpha: FloatArray
    gamma: FloatArray
    posterior: SoftmaxPosterior
    origin: FloatArray
    """Where the posterior's intercepts are: it measures the columns from here."""
    log_evidence: float
    converged: bool

    def bare(self) -> "SoftmaxFit":
        """The same without the training rows."""
        return replace(self, posterior=replace(self.posterior, design=self.posterior.design.bare()))

    def latent(self, rows: ClassRows) -> tuple[FloatArray, FloatArray]:
        """Mean (n×C) and covariance (n×C×C) of η for new rows in the same units."""
        design = self.posterior.design
        Phi = [rows.columns(columns) - self.origin[columns] for columns in design.column]
        means = [columns @ w for columns, w in zip(Phi, design.split(self.posterior.w), strict=True)]
        return np.column_stack(means) + self.posterior.level, self.posterior.predictor_covariance(Phi)


def _first_designs(rows: Design, there: BoolArray) -> ClassDesigns:
    """The columns that each class (a row of `there`) begins with; classes with the same ones share them."""
    columns = [np.flatnonzero(row) for row in there]
    made: dict[bytes, ClassRows] = {}
    for row, which in zip(there, columns, strict=True):
        made.setdefault(row.tobytes(), rows if row.all() else rows.keep(which))
    return ClassDesigns(tuple(made[row.tobytes()] for row in there), tuple(columns))


def solve(
    problem: SoftmaxProblem,
    *,
    rule: ScaleRule,
    shared: bool,
    trace: Trace,
    settings: Settings,
    alpha: FloatArray | None = None,
) -> SoftmaxFit:
    """Iterate a scale rule until the evidence moves by less than `tol` nats; `alpha` (C×D) is the start.

    Weights whose precision is infinite there are out from the start, and do not come back.

    `shared` says that the rule gives all weights one precision (RMLR): then nothing leaves and nothing is priced.
    Otherwise (SMLR) a weight leaves when its best precision is ∞ and γ is small. With a price, precisions of features
    that are not worth it grow by a constant factor instead of following the rule, as in the batch solver; they leave
    when even together they determine next to nothing. Of the features that become worth their price as their rivals
    fade only the best returns in each iteration, and the others wait: two copies would return, and fade, together. It
    returns once, and then stays while the evidence without it is lower by the price: near the price, and for features
    that separate the classes, what `worth` says from one mode depends on whether the feature has faded there.
    """
    given, C = problem.rows, problem.n_classes
    if problem.flat_intercept and not (np.bincount(problem.t, problem.weight, C) > 0).all():
        raise ValueError("a class without rows has no flat intercept")
    rows = given.unweighted()
    if problem.flat_intercept:
        rows = rows.centred(problem.weight)
    problem = replace(problem, rows=rows)
    square = rows.column_square(problem.weight) / problem.weight.sum()
    usable = np.flatnonzero(square > 0)
    if alpha is None:
        # Each class's η has prior variance one, in whatever units the columns are.
        alpha = np.tile(np.full_like(square, square.sum()) if shared else square * len(usable), (C, 1))
    limit = square * problem.weight.sum()

    def bounds(features: IntArray) -> FloatArray:
        """Precisions beyond which the prior, or the data, have no say; not less than the least one allowed."""
        extremes = np.multiply.outer([1 / EXTREME, EXTREME], limit.sum() if shared else limit[features])
        return np.asarray(np.maximum(extremes, problem.least_alpha))

    there = np.isfinite(alpha) & (square > 0)
    design = _first_designs(rows, there)
    n_weights = int(there.sum())
    state = State(design, alpha[there], np.zeros(n_weights), np.zeros(C), there.any(axis=0), square < 0)

    def step(state: State) -> tuple[State, Info]:
        post, features = problem.posterior(state.design, state.alpha, state.w, state.level), state.design.features
        b = problem.b[:1] if shared else problem.b[features]
        hyper = log_hyper_prior(state.alpha[:1] if shared else state.alpha, problem.a, b).sum()
        objective = post.log_evidence + float(hyper)
        alpha = np.clip(rule(post.w, post.var, post.gamma, problem.a, b), *bounds(features))
        kept, paid, returned, steady = np.ones(len(alpha), dtype=bool), state.paid, state.returned, post.settled
        if not shared:
            s, q = post.gamma / post.var, post.w / post.var
            kept = np.isfinite(ard_candidate(s, q, problem.a, b)) | (post.gamma >= PRUNE_BELOW)
        if not shared and problem.price > 0:
            worth = problem.worth(post, state.alpha)
            pays = (worth > problem.price) & (paid | ~returned)
            for feature in np.flatnonzero(paid & returned & ~pays):
                pays[feature] = problem.brings(post, state.alpha, int(feature)) > problem.price
            returns = np.arange(len(pays)) == np.argmax(np.where(pays & ~paid, worth, -1.0))
            paid, returned = pays & (paid | returns), returned | (pays & ~paid & returns)
            fades, follows = ~pays[features], paid[features]
            alpha = np.where(follows, alpha, np.where(fades, PRICE_INFLATION, 1.0) * state.alpha)
            kept = np.where(follows, kept, ~fades | (post.gamma * fades.sum() >= PRUNE_BELOW))
            steady = steady and bool(follows.all())
        new = State(state.design.keep(kept), alpha[kept], post.w[kept], post.level, paid, returned, objective)
        change = abs(objective - state.objective) if steady and kept.all() else np.inf
        return new, Info(objective, change, int(kept.sum()), post.jitter)

    state, converged = iterate(state, step, trace=trace, settings=settings)
    post = problem.posterior(state.design, state.alpha, state.w, state.level)
    origin = rows.offset

    def everywhere(values: FloatArray, gone: float) -> FloatArray:
        full = np.full((C, len(square)), gone)
        full[state.design.classes, state.design.features] = values
        return full

    coef, gamma, alpha = everywhere(post.w, 0.0), everywhere(post.gamma, 0.0), everywhere(state.alpha, np.inf)
    intercept = post.level - coef @ origin
    return SoftmaxFit(
        coef, intercept, np.isfinite(alpha), alpha, gamma, post, origin, post.log_evidence, converged and post.settled
    )
