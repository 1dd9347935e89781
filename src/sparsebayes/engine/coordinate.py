"""L1-penalised maximum likelihood, coordinate by coordinate: a lasso whose sites are recomputed until it converges.

The minimiser of -log p(t | w) + Σ penalty_m |w_m|. The sites are the parabola at the present w; its lasso is solved by
coordinate descent (docs/mathematics.md, section 2); the step to it is halved until the true objective rises.
"""

from dataclasses import dataclass

import numpy as np

from sparsebayes.core.types import FloatArray
from sparsebayes.engine.candidates import under_sites
from sparsebayes.engine.loop import Info, Settings, Trace, iterate
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.reweighted import Lasso
from sparsebayes.engine.view import HALVINGS, Mode


@dataclass(frozen=True)
class L1Problem:
    """A problem with a Laplace prior: `penalty` is the factor in front of each |w|."""

    problem: Problem
    penalty: FloatArray
    lasso: Lasso

    def log_joint(self, mode: Mode) -> float:
        """Log p(t | w) - Σ penalty |w|."""
        fit = mode.log_likelihood(self.problem, self.problem.design)
        return float(fit - self.penalty @ np.abs(mode.w))

    def goal(self, mode: Mode) -> Mode:
        """Minimiser of the penalised parabola at this point."""
        design = self.problem.design
        sites = mode.sites(self.problem, design)
        rows = under_sites(design.columns(slice(None)), sites, self.problem.flat_intercept)
        w = self.lasso(rows.Phi, rows.t, self.penalty, mode.w)
        return Mode(mode.likelihood, w, rows.level - float(rows.means @ w))

    def run(self, mode: Mode, trace: Trace, settings: Settings) -> tuple[Mode, bool]:
        """Iterate until a step gains less than `tol` nats."""

        def step(here: Mode) -> tuple[Mode, Info]:
            value, goal = self.log_joint(here), self.goal(here)
            for part in 0.5 ** np.arange(HALVINGS):
                w, level = here.w + part * (goal.w - here.w), here.level + part * (goal.level - here.level)
                there = Mode(here.likelihood, w, float(level))
                new = self.log_joint(there)
                if new >= value:
                    return there, Info(new, new - value, int(np.count_nonzero(there.w)))
            return here, Info(value, 0.0, int(np.count_nonzero(here.w)))

        return iterate(Mode(mode.likelihood, mode.w, mode.level), step, trace=trace, settings=settings)
