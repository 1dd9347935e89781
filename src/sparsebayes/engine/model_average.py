"""Averages over the models of a regression, of classes and of counts: which chains serve which likelihood."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit

from sparsebayes.core.inclusion import DENSE, InclusionPrior
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.engine import augmented, averaging, chain
from sparsebayes.engine.augmented import FLIPS, Augmented
from sparsebayes.engine.averaging import Averaged, Drawing, Run, Schedule, average, first_sets, prepared
from sparsebayes.engine.group_sets import by_columns, group_score, sets_of
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.loop import Callback
from sparsebayes.engine.problem import Problem

LOGISTIC_VARIANCE = np.pi**2 / 3
"""Of the logistic distribution: the noise of a logistic regression, and the typical prior variance of its weights."""


@dataclass(frozen=True)
class Chains:
    """How many chains, how long each may be, and how they are run."""

    n_chains: int
    max_flips: int
    seed: int
    n_jobs: int | None = None
    callback: Callback | None = None
    n_draws: int = averaging.N_DRAWS

    def sample(
        self,
        run: Run,
        odds: "Odds",
        start: IntArray,
        score: FloatArray,
        n_rows: int,
        settling: int = averaging.SETTLING,
        round: int = averaging.ROUND,
        draw: Drawing | None = None,
    ) -> Averaged:
        """What they find; `score` says how well each column goes with the target, and `draw` is as in `average`."""
        if odds.labels is not None:
            start, n_rows = np.unique(odds.labels[start]), int(n_rows / odds.per_unit)
        found = average(
            run,
            first_sets(start, group_score(score, odds.labels), odds.log_prior, n_rows, self.n_chains),
            Schedule(settling, round, self.max_flips),
            seed=self.seed,
            draw=draw,
            n_draws=self.n_draws,
            n_jobs=self.n_jobs,
            callback=self.callback,
        )
        return by_columns(found, odds.labels)


@dataclass(frozen=True)
class Odds:
    """What prices say about columns beforehand."""

    log_prior: FloatArray
    """Log prior odds of each column relative to the inclusion rate; infinite: always in, or never."""
    rate: float | None
    """The inclusion rate where it is not learned."""
    labels: IntArray | None = None
    """The group of every column, where groups are in or out; `log_prior` then has an entry for each group."""

    @classmethod
    def of(cls, nats: FloatArray | float | None, usual: float, usable: BoolArray) -> "Odds":
        """Without a price the rate is learned; one price for all columns is a rate of its own.

        Prices column by column are odds relative to the `usual` price; a column that costs nothing is in every model.
        """
        log_prior = np.where(usable, 0.0, -np.inf)
        if nats is None:
            return cls(log_prior, None)
        if np.ndim(nats) == 0:
            return cls(log_prior, float(expit(-nats)))
        relative = np.where(np.asarray(nats) > 0, usual - np.asarray(nats), np.inf)
        return cls(np.where(usable, relative, -np.inf), None)

    def grouped(self, labels: IntArray) -> "Odds":
        """The same for groups of columns, which are usable if one of their columns is."""
        log_prior = np.full(labels.max() + 1, -np.inf)
        np.maximum.at(log_prior, labels, self.log_prior)
        return Odds(log_prior, self.rate, labels)

    @property
    def per_unit(self) -> float:
        """Columns in a group, on average."""
        return 1.0 if self.labels is None else len(self.labels) / len(self.log_prior)

    def prior(self, noise: float = 1.0, typical: float = np.inf, dense: float = 0.0) -> InclusionPrior:
        """The prior of sets of the columns, or groups, that may be in or out.

        The share of the variance that they explain counts columns.
        """
        n_units = int(np.isfinite(self.log_prior).sum())
        return InclusionPrior.of(n_units, self.rate, noise / self.per_unit, typical, dense)


def average_regression(problem: LeastSquares, odds: Odds, start: IntArray, chains: Chains) -> Averaged:
    """Of a least-squares problem; a noise that is known must be one."""
    known = problem.known_noise is not None
    sets = prepared(sets_of(problem, odds.log_prior, odds.prior(), odds.labels, learns_noise=not known))
    given = partial(chain.run, sets), odds, start, problem.projection, problem.design.n_rows
    return chains.sample(*given, draw=sets.draw)


def average_classes(problem: Problem, odds: Odds, start: IntArray, chains: Chains) -> Averaged:
    """Of a logistic problem, by drawing its sites."""
    sampler = Augmented(problem, odds.log_prior, odds.prior(LOGISTIC_VARIANCE, LOGISTIC_VARIANCE, DENSE), odds.labels)
    residual = problem.weight * (problem.t - problem.weight @ problem.t / problem.weight.sum())
    lengths = FLIPS * augmented.SETTLING, FLIPS * augmented.ROUND
    return chains.sample(sampler.run, odds, start, problem.design.project(residual), len(problem.t), *lengths)
