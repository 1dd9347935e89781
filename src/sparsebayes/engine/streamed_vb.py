"""Variational Bayes for logistic regression on rows that are read in passes: one pass for each iteration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sparsebayes.core.evidence import integral
from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.posterior import GaussianPosterior, posterior_from_gram
from sparsebayes.core.prices import FREE, Price
from sparsebayes.core.priors import Prior
from sparsebayes.core.scales import em, shared_em
from sparsebayes.core.statistics import SiteMoments, SiteSums
from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.design import Columns, Design
from sparsebayes.engine import batch
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.result import Result
from sparsebayes.engine.streamed import Centred


@dataclass(frozen=True)
class Belief:
    """Mean of weights and intercept at an origin, and a root of their covariance: what the contact points follow."""

    mean: FloatArray
    level: float
    root: FloatArray

    def keep(self, which: BoolArray) -> "Belief":
        """All weights stay."""
        return self

    @classmethod
    def of(cls, posterior: GaussianPosterior, view: Centred) -> "Belief":
        """The intercept is independent of the weights at the columns' means under the sites."""
        D = len(posterior.mean)
        root = np.zeros((D + 1, D + 1))
        root[:D, :D], root[:D, D] = posterior.root, -posterior.root @ view.means
        root[D, D] = np.sqrt(view.level_variance)
        return cls(posterior.mean, view.level - float(view.means @ posterior.mean), root)


class Step(NamedTuple):
    """As the batch loop takes it."""

    posterior: GaussianPosterior
    value: float
    carry: Belief
    view: Centred


@dataclass(frozen=True)
class BatchProblem:
    """The parts of a problem that the batch loop needs."""

    design: Design
    prior: Prior
    price: Price = FREE


def variational_bayes(
    reduce: Callable[[SiteMoments], SiteSums], origin: FloatArray, prior: Prior, flat: bool, settings: Settings
) -> Result:
    """Gamma priors on the precisions, integrated out; contact points begin at zero, as with rows in memory."""
    D = len(origin)
    rule = shared_em if getattr(prior, "shared", False) else em
    last: list[Step] = []

    def w_step(design: Columns, alpha: FloatArray, belief: Belief) -> Step:
        sums = reduce(SiteMoments(Bernoulli(), origin, belief.mean, belief.level, belief.root))
        view = Centred.of(sums, belief.mean, belief.level, flat)
        posterior = posterior_from_gram(view.gram, view.projection, alpha)
        step = posterior.mean - belief.mean
        rise = float(step @ (view.projection - view.gram @ belief.mean)) - 0.5 * float(step @ view.gram @ step)
        short = view.level - belief.level - float(view.means @ belief.mean)
        value = view.value + rise + (0.5 * short**2 / view.level_variance if flat else 0.0)
        value = integral(value, posterior.mean, alpha, posterior.logdet)
        value += 0.5 * np.log(2 * np.pi * view.level_variance) if flat else 0.0
        last[:] = [Step(posterior, value, Belief.of(posterior, view), view)]
        return last[0]

    posed = BatchProblem(DenseRows.of(np.zeros((0, D))), prior)
    alpha = np.broadcast_to(prior.a / np.asarray(prior.b), D).copy()
    first = batch.State(posed.design, np.arange(D), alpha, Belief(np.zeros(D), 0.0, np.zeros((1, D + 1))))
    trace = Trace()
    state, converged = batch.run(
        posed, first, w_step=w_step, rule=rule, trace=trace, settings=settings, prune_below=0.0
    )
    # The model at its own final precisions and contact points.
    end = w_step(posed.design, state.alpha, state.carry)
    return Result(
        active=np.arange(D), alpha=state.alpha, posterior=end.posterior, level=end.view.level,
        level_variance=end.view.level_variance, origin=end.view.means, likelihood=Bernoulli(),
        log_evidence=end.value + prior.scale_term(state.alpha), worth=np.zeros(D), gap=trace.infos[-1].change,
        converged=converged, trace=trace,
    )  # fmt: skip
