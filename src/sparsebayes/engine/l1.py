"""L1-penalised logistic regression, component by component: a lasso on the sites, taken anew until nothing moves.

The minimiser of -log p(t | w) + Σ penalty_m |w_m|. The sites are the parabola at the present w; its lasso is
solved by coordinate descent, which keeps the linear predictor current after every single weight (mathematics, section
2); the step to it is halved until the true objective falls.
"""

from dataclasses import dataclass

import numpy as np

from sparsebayes.core.sites import bernoulli_log_likelihood
from sparsebayes.core.types import FloatArray
from sparsebayes.engine.bernoulli import BernoulliProblem, Mode
from sparsebayes.engine.loop import Callback, Info, Trace, iterate
from sparsebayes.engine.reweighted import Lasso


@dataclass(frozen=True)
class L1Problem:
    """A two-class problem with a Laplace prior: `penalty` is the factor in front of each |w|."""

    bernoulli: BernoulliProblem
    penalty: FloatArray
    lasso: Lasso

    def log_joint(self, mode: Mode) -> float:
        """Log p(t | w) - Σ penalty |w|."""
        eta = mode.eta(self.bernoulli.rows)
        fit = self.bernoulli.weight @ bernoulli_log_likelihood(self.bernoulli.t, eta)
        return float(fit - self.penalty @ np.abs(mode.w))

    def goal(self, mode: Mode) -> Mode:
        """Minimiser of the penalised parabola at this point."""
        view = self.bernoulli.gaussian_view(self.bernoulli.sites(self.bernoulli.rows, mode))
        w = self.lasso(view.rows.columns(slice(None)), view.t, self.penalty, mode.w)
        if not self.bernoulli.flat_intercept:
            return Mode(w)
        moved = (view.rows.mean - self.bernoulli.rows.mean) / view.rows.scale
        return Mode(w, view.level - float(moved @ w))

    def run(
        self, mode: Mode, *, trace: Trace, tol: float, max_iter: int, callback: Callback | None = None
    ) -> tuple[Mode, bool]:
        """Iterate until a step gains less than `tol` nats."""

        def step(here: Mode) -> tuple[Mode, Info]:
            value = self.log_joint(here)
            goal = self.goal(here)
            for there in here.towards(goal):
                new = self.log_joint(there)
                if new >= value:
                    return there, Info(new, new - value, int(np.count_nonzero(there.w)))
            return here, Info(value, 0.0, int(np.count_nonzero(here.w)))

        return iterate(mode, step, trace=trace, tol=tol, max_iter=max_iter, callback=callback)
