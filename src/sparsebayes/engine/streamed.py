"""The sequential search for classes and counts on rows that are read in passes (docs/scaling.md).

A wide pass sums up the local approximation of all columns at the present model: under it the search is one on Gaussian
products, without rows. It proposes columns. Narrow passes over the proposed and kept columns alone then fit them under
the real likelihood, and only the real priced evidence decides what stays. The search ends when a wide pass at the
model proposes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from sparsebayes.core.evidence import integral
from sparsebayes.core.likelihoods import Gaussian, Likelihood
from sparsebayes.core.posterior import GaussianPosterior, posterior_from_gram, relevance
from sparsebayes.core.prices import Price, chosen, total
from sparsebayes.core.priors import ARD
from sparsebayes.core.statistics import SiteMoments, SiteSums
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.products import from_products
from sparsebayes.engine.ascent import Ascent, Limits, Snapshot
from sparsebayes.engine.gaussian_search import finish
from sparsebayes.engine.least_squares import LeastSquares, Solution
from sparsebayes.engine.loop import Info, Settings, Trace
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.result import Result
from sparsebayes.engine.scale_fit import fit_scales
from sparsebayes.engine.search import MIN_RISE
from sparsebayes.engine.view import Mode

NARROW_PASSES = 50
"""Narrow passes of one fit; Newton's method takes five to ten."""
HALVINGS = 20
"""A step is halved at most this often."""
ROUNDING = 1e-12
"""Share of the log likelihood, a sum over many rows, below which a change of it says nothing."""


@dataclass(frozen=True)
class Units:
    """x = (X - origin) / unit: columns in the units of the search."""

    origin: FloatArray
    unit: FloatArray

    def standard(self, sums: SiteSums, columns: IntArray) -> SiteSums:
        """Sums over (X - origin) as sums over x; a constant column, of unit infinity, is zero."""
        unit = self.unit[columns]
        return replace(
            sums, sums=sums.sums / unit, products=sums.products / unit / unit[:, None], slopes=sums.slopes / unit
        )


@dataclass(frozen=True)
class Centred:
    """The local approximation with a flat intercept eliminated: products, Φᵀh, and the way back to the intercept."""

    gram: FloatArray
    projection: FloatArray
    means: FloatArray
    level: float
    level_variance: float
    value: float
    """Log likelihood at the point."""

    @classmethod
    def of(cls, sums: SiteSums, w: FloatArray, level: float, flat: bool) -> "Centred":
        """At the point w (of all columns of the sums), level."""
        if not flat:
            return cls(sums.products, sums.products @ w + sums.slopes, np.zeros(len(w)), 0.0, 0.0, sums.value)
        means = sums.sums / sums.total
        gram = sums.products - np.multiply.outer(means, sums.sums)
        projection = gram @ w + sums.slopes - means * sums.slope
        there = level + float(means @ w) + sums.slope / sums.total
        return cls(0.5 * (gram + gram.T), projection, means, there, 1 / sums.total, sums.value)


@dataclass(frozen=True)
class Model:
    """Columns, precisions, the mode, and the posterior and evidence of the local approximation there."""

    active: IntArray
    alpha: FloatArray
    w: FloatArray
    level: float
    view: Centred
    posterior: GaussianPosterior
    evidence: float
    converged: bool = True


@dataclass
class Streamed:
    """A problem on blocks of rows, and the passes that were made over them."""

    n_columns: int
    likelihood: Likelihood
    price: Price
    prior: ARD
    flat: bool
    settings: Settings
    reduce: Callable[..., SiteSums]
    """Makes a pass, or knows its result from an earlier run."""
    trace: Trace = field(default_factory=Trace)
    n_wide: int = 0
    n_narrow: int = 0
    units: Units | None = None

    # --- passes ---

    def sums(self, columns: IntArray | None, active: IntArray, w: FloatArray, level: float) -> SiteSums:
        """One pass at a point, in standard units; `columns` None: over all columns."""
        assert self.units is not None
        everything = np.arange(self.n_columns)
        which = everything if columns is None else columns
        coef = np.zeros(len(everything))
        coef[active] = w / self.units.unit[active]
        statistic = SiteMoments(self.likelihood, self.units.origin[which], coef[which], level)
        self.n_wide, self.n_narrow = self.n_wide + (columns is None), self.n_narrow + (columns is not None)
        return self.units.standard(self.reduce(statistic, columns), which)

    def report(self, model: Model | None, change: float, action: str) -> bool:
        """Report a step. Returns whether a callback asks to stop."""
        objective = -np.inf if model is None else model.evidence
        info = Info(objective, change, 0 if model is None else len(model.active), 0.0, action)
        if model is not None:
            self.trace.infos.append(info)
        return bool(self.settings.callback and self.settings.callback(self.n_wide + self.n_narrow, info))

    # --- one model ---

    def fit(self, active: IntArray, alpha: FloatArray, w: FloatArray, level: float) -> Model:
        """Precisions and mode of some columns, converged together by narrow passes.

        Between two passes the precisions converge under the local approximation at hand (engine/scale_fit.py).
        """
        tol, value, model = self.settings.tol, -np.inf, None
        goal = (w, level)
        here = (np.zeros_like(w), level)
        for _ in range(NARROW_PASSES):
            view, penalised = self._look(active, alpha, goal)
            for _ in range(HALVINGS):
                if model is None or penalised >= value - ROUNDING * (1 + abs(value)):
                    break
                goal = (0.5 * (goal[0] + here[0]), 0.5 * (goal[1] + here[1]))
                view, penalised = self._look(active, alpha, goal)
            here, before = goal, model
            model = self._at(active, alpha, here, view)
            moved = np.inf if before is None else abs(model.evidence - before.evidence)
            step = np.max(np.abs(np.log(model.alpha / alpha)) * model.posterior.gamma, initial=0.0)
            alpha = model.alpha
            value = view.value - 0.5 * float(alpha @ here[0] ** 2)
            goal = (model.posterior.mean, self._level(view, model.posterior.mean))
            if max(moved, step) <= max(tol, ROUNDING * abs(model.evidence)) or not len(active):
                return model
            if self.report(model, moved, "narrow pass"):
                break
        assert model is not None
        return replace(model, converged=False)

    def _look(self, active: IntArray, alpha: FloatArray, at: tuple[FloatArray, float]) -> tuple[Centred, float]:
        sums = self.sums(active, active, *at)
        return Centred.of(sums, *at, self.flat), sums.value - 0.5 * float(alpha @ at[0] ** 2)

    def _level(self, view: Centred, w: FloatArray) -> float:
        """The intercept at the columns' own origin."""
        return view.level - float(view.means @ w) if self.flat else 0.0

    def _at(self, active: IntArray, alpha: FloatArray, here: tuple[FloatArray, float], view: Centred) -> Model:
        """Precisions that have converged under the local approximation at a point, and the evidence there."""
        w = here[0]
        alpha = self._scales(active, alpha, view)
        posterior = posterior_from_gram(view.gram, view.projection, alpha)
        # The quadratic at w with its maximum at μ: log p(w) + ½ (μ - w)ᵀ(A + G)(μ - w) for the penalised likelihood.
        step = posterior.mean - w
        rise = 0.5 * float(step @ (view.gram @ step + alpha * step))
        penalised = view.value - 0.5 * float(alpha @ w**2) + rise + self._intercept_rise(here, view)
        value = penalised + 0.5 * float(alpha @ posterior.mean**2)
        evidence = integral(value, posterior.mean, alpha, posterior.logdet) + self.prior.of(active).scale_term(alpha)
        evidence += 0.5 * np.log(2 * np.pi * view.level_variance) if self.flat else 0.0
        return Model(active, alpha, w, here[1], view, posterior, evidence)

    def _intercept_rise(self, here: tuple[FloatArray, float], view: Centred) -> float:
        """What the best flat intercept under the approximation brings over the present one."""
        if not self.flat:
            return 0.0
        short = view.level - here[1] - float(view.means @ here[0])
        return 0.5 * short**2 / view.level_variance

    def _scales(self, active: IntArray, alpha: FloatArray, view: Centred) -> FloatArray:
        """Tipping's fixed point under given products, by the same turns as with rows."""
        if not len(active):
            return alpha
        rows = from_products(view.gram, view.projection)
        problem = Problem(
            design=rows.design,
            t=rows.t,
            weight=np.ones(len(rows.t)),
            likelihood=Gaussian(1.0, learns=False),
            prior=self.prior.of(active),
            flat_intercept=False,
        )
        mode = Mode(problem.likelihood, np.zeros(len(active)))
        found = fit_scales(problem, np.arange(len(active)), alpha, mode, self.settings.tol, drop_worthless=False)
        return found.alpha

    # --- the search ---

    def problem(self, view: Centred, columns: IntArray, n: float) -> LeastSquares:
        """Columns under the local approximation, as a least-squares problem with noise variance one."""
        rows = from_products(view.gram[np.ix_(columns, columns)], view.projection[columns])
        return LeastSquares(
            design=rows.design,
            t=rows.t,
            known_projection=rows.projection,
            n_weighted=n,
            flat_intercept=self.flat,
            prior=self.prior.of(columns),
            price=chosen(self.price, columns),
        )

    def priced(self, model: Model) -> float:
        """Log evidence less the price of what is kept."""
        return model.evidence - total(self.price, model.active)

    def propose(
        self, wide: Centred, model: Model, refused: frozenset[int], n: float
    ) -> tuple[IntArray, FloatArray, FloatArray, Snapshot]:
        """Columns to add with their precisions and weights, by the Gaussian search from the model; and its start."""
        free = np.setdiff1d(np.flatnonzero(wide.gram.diagonal() > 0), [*refused, *model.active])
        columns = np.append(model.active, free).astype(np.intp)
        problem, kept = self.problem(wide, columns, n), len(model.active)
        ascent = Ascent(problem, Solution(np.arange(kept), model.alpha, 1.0))
        start = ascent.snapshot()
        end, _ = finish(
            ascent, Limits(max(self.settings.tol, MIN_RISE), hold_noise=True), Trace(), self.silent_settings
        )
        new = end.active >= kept
        return columns[end.active[new]], end.alpha[end.active[new]], end.mean[new], start

    @property
    def silent_settings(self) -> Settings:
        """Settings without a callback, for steps that need no pass."""
        return replace(self.settings, callback=None)

    def pruned(self, model: Model) -> Model:
        """Without the columns that are not worth their price, one after the other, by the real evidence."""
        needed: set[int] = set()
        while True:
            worth, price = self.worth(model), np.broadcast_to(self.price.nats, self.n_columns)[model.active]
            doubtful = [k for k in np.argsort(worth - price) if worth[k] < price[k] and model.active[k] not in needed]
            if not doubtful:
                return model
            stays = np.arange(len(model.active)) != doubtful[0]
            there = self.fit(model.active[stays], model.alpha[stays], model.w[stays], model.level)
            if self.priced(there) >= self.priced(model):
                model = there
            else:
                needed.add(int(model.active[doubtful[0]]))

    def worth(self, model: Model) -> FloatArray:
        """Nats that each kept column brings at its best precision."""
        prior, var = self.prior.of(model.active), model.posterior.var
        s, q = relevance(model.alpha, var) / var, model.posterior.mean / var
        return prior.gain(prior.candidate(s, q), s, q)

    def run(self, first: SiteSums, level: float) -> Result:
        """From the sums of the first wide pass, at the model without weights."""
        none, nothing = np.empty(0, dtype=np.intp), np.empty(0)
        wide = Centred.of(first, np.zeros(self.n_columns), level, self.flat)
        empty = replace(wide, gram=wide.gram[:0, :0], projection=nothing, means=nothing)
        model, refused, converged = self._at(none, nothing, (nothing, level), empty), frozenset[int](), False
        for _ in range(self.settings.max_iter):
            columns, alpha, w, start = self.propose(wide, model, refused, first.n)
            if not len(columns):
                converged = True
                break
            there = self.fit(
                np.append(model.active, columns), np.append(model.alpha, alpha), np.append(model.w, w), model.level
            )
            there = self.pruned(there)
            if self.priced(there) <= self.priced(model) + MIN_RISE:
                refused = refused.union(int(j) for j in columns)
                continue
            model, refused = there, frozenset()
            full = np.zeros(self.n_columns)
            full[model.active] = model.w
            wide = Centred.of(self.sums(None, model.active, model.w, model.level), full, model.level, self.flat)
            if self.report(model, np.inf, "wide pass"):
                break
        return self._result(model, start, refused, converged)

    def refitted(self, active: IntArray, alpha: FloatArray, w: FloatArray, level: float) -> Result:
        """Precisions and mode of columns that were chosen elsewhere; what others would bring is not known."""
        model = self.fit(active, alpha, w, level)
        worth = np.zeros(self.n_columns)
        worth[model.active] = self.worth(model)
        return self._stored(model, worth, np.nan, model.converged)

    def _result(self, model: Model, start: Snapshot, refused: frozenset[int], converged: bool) -> Result:
        """The model with the worth of every candidate under the last wide pass, and the certificate."""
        kept, D = len(model.active), self.n_columns
        columns = np.append(model.active, np.setdiff1d(np.arange(D), model.active)).astype(np.intp)
        worth, gain = np.zeros(D), np.zeros(D)
        seen = np.setdiff1d(columns[kept:], [*refused])
        usable = np.append(model.active, seen[: start.problem.n_columns - kept]).astype(np.intp)
        worth[usable], gain[usable] = start.best_moves.worth[: len(usable)], start.best_moves.gain[: len(usable)]
        return self._stored(model, worth, float(gain.max(initial=0.0)), converged and model.converged)

    def _stored(self, model: Model, worth: FloatArray, gap: float, converged: bool) -> Result:
        inner = self._sorted(model, np.argsort(model.active))
        return Result(
            active=inner.active, alpha=inner.alpha, posterior=inner.posterior, level=inner.view.level,
            level_variance=inner.view.level_variance, origin=inner.view.means, likelihood=self.likelihood,
            log_evidence=inner.evidence, worth=worth, gap=gap,
            converged=converged, trace=self.trace,
        )  # fmt: skip

    def _sorted(self, model: Model, order: IntArray) -> Model:
        """The same model with its columns in their own order."""
        view = replace(
            model.view, gram=model.view.gram[np.ix_(order, order)], projection=model.view.projection[order],
            means=model.view.means[order],
        )  # fmt: skip
        posterior = posterior_from_gram(view.gram, view.projection, model.alpha[order])
        return replace(
            model,
            active=model.active[order],
            alpha=model.alpha[order],
            w=model.w[order],
            view=view,
            posterior=posterior,
        )
