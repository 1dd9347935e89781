"""Sets of columns that several outputs share, for a chain (docs/mathematics.md, section 9.6)."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine import chain
from sparsebayes.engine.averaging import Averaged, prepared
from sparsebayes.engine.flips import make_flips
from sparsebayes.engine.model_average import Chains, Odds
from sparsebayes.engine.outputs import OutputsProblem
from sparsebayes.engine.sets import Sets


@dataclass(frozen=True)
class OutputSets(Sets):
    """Sets of columns of a problem with several outputs: all have one c, and each its noise, or all the same."""

    shares_noise: bool = False

    @cached_property
    def n(self) -> float:
        """Degrees of freedom of one noise variance; infinite where it is known."""
        if not self.learns_noise:
            return np.inf
        return self.problem.n * (self.problem.t.shape[1] if self.shares_noise else 1)

    @cached_property
    def energy(self) -> FloatArray:
        """ρ of the empty set, for each output."""
        return np.asarray((self.problem.t**2).sum(axis=0)) + self.floor

    def _log_fit(self, rest: FloatArray, log_volume: FloatArray) -> FloatArray:
        """The outputs' sum, which are independent given set, c and noise."""
        n_outputs = rest.shape[-1]
        if self.shares_noise:
            rest, log_volume = rest.sum(axis=-1, keepdims=True), n_outputs * log_volume
        return np.asarray(super()._log_fit(rest, log_volume[:, None]).sum(axis=-1))

    def flips(self, spread: FloatArray) -> Any:
        """The state of a chain."""
        problem = self.problem
        given = self.products, self.rows, problem.projection, self.log_prior, self.n, spread, self.shares_noise
        return make_flips(*given)

    def _draw_noise(self, rest: FloatArray, rng: np.random.Generator, n: int) -> FloatArray:
        if not self.shares_noise:
            return super()._draw_noise(rest, rng, n)
        return np.repeat(super()._draw_noise(rest.sum(), rng, n)[:, None], len(rest), axis=1)


def average_outputs(
    problem: OutputsProblem, odds: Odds, start: IntArray, chains: Chains, *, shares_noise: bool
) -> list[Averaged]:
    """Averages over sets of columns that all outputs share, one for each output; a noise that is known must be one."""
    known = problem.known_noise is not None
    sets = prepared(OutputSets(problem, odds.log_prior, odds.prior(), not known, shares_noise=shares_noise))
    score = np.sqrt((problem.projection**2).mean(axis=1))
    found = chains.sample(partial(chain.run, sets), odds, start, score, problem.design.n_rows, draw=sets.draw)
    if shares_noise:  # all of them inform about it
        found = replace(found, rest=np.full(problem.n_outputs, found.rest.sum()))
    return [output_of(found, k) for k in range(problem.n_outputs)]


def output_of(found: Averaged, k: int) -> Averaged:
    """What was found of one output."""
    draws = [
        replace(draw, weights=draw.weights[:, k], noise=float(draw.noise[k]), level=float(draw.level[k]))
        for draw in found.draws
    ]
    return replace(found, mean=found.mean[:, k], std=found.std[:, k], rest=found.rest[k], draws=draws)
