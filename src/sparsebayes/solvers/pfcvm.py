"""Two classes with samples and features chosen together (PFCVM; mathematics, section 5): the model that is weighed.

How the weights of the inputs are found is in solvers/feature_weights.py; here is what it asks of a probabilistic
classification vector machine (solvers/pcvm.py). Its search sees to it that no weight has the wrong sign; the climb in
between follows Laplace's evidence on the columns that are left. What truncation does to the evidence (a factor of at
most 2 for every vector, which would favour many) is left out when models are compared.
"""

from dataclasses import dataclass

import numpy as np

from sparsebayes.core.types import FloatArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.solvers import pcvm
from sparsebayes.solvers.bernoulli import BernoulliProblem
from sparsebayes.solvers.climb import Evidence, Slopes, laplace_evidence
from sparsebayes.solvers.feature_weights import Weighed, Weigher, relevance
from sparsebayes.solvers.linearised import Model
from sparsebayes.solvers.loop import Settings
from sparsebayes.solvers.width import Fit


@dataclass(frozen=True)
class ClassificationBlock:
    """A classification vector machine as the model whose inputs are weighed."""

    t: FloatArray
    weight: FloatArray
    sign: FloatArray
    """Label of each candidate column, ±1."""
    flat_intercept: bool
    truncation: pcvm.Truncation
    settings: Settings
    least_alpha: float
    slopes: Evidence

    @classmethod
    def of(
        cls,
        t: FloatArray,
        weight: FloatArray,
        sign: FloatArray,
        flat_intercept: bool,
        truncation: pcvm.Truncation,
        settings: Settings,
        least_alpha: float,
    ) -> "ClassificationBlock":
        """The block of a problem."""
        nothing = DenseRows.of(np.empty((len(t), 0)))
        plain = BernoulliProblem(nothing, t, weight, flat_intercept, 0.0, 0.0, np.empty(0))
        return cls(t, weight, sign, flat_intercept, truncation, settings, least_alpha, laplace_evidence(plain))

    def problem_on(self, K: FloatArray) -> BernoulliProblem:
        """The problem on kernel columns: standardised, with the sign of their labels."""
        rows = DenseRows.of(K).standardised(self.weight, centre=self.flat_intercept).unweighted()
        rows = DenseRows(rows.X, rows.mean, rows.scale * self.sign, rows.root_weight)
        none = np.zeros(K.shape[1])
        return BernoulliProblem(rows, self.t, self.weight, self.flat_intercept, 0.0, 0.0, none, self.least_alpha)

    def search(self, K: FloatArray, near: Fit[None] | None) -> Fit[None]:
        """The best model on these columns, from a fit on similar ones or from nothing."""
        problem = self.problem_on(K)
        start = None if near is None else start_on(problem, near)
        found = pcvm.solve(problem, self.truncation, self.settings, start)
        scales = np.log(found.alpha * problem.rows.scale[found.active] ** 2)
        return Fit(self.evidence(K[:, found.active], scales).value, found.active, scales, None)

    def evidence(self, K: FloatArray, scales: FloatArray) -> Slopes:
        """Laplace's log evidence of a model that keeps just these columns, and its slopes."""
        return self.slopes(K, scales)


def start_on(problem: BernoulliProblem, near: Fit[None]) -> Model:
    """A fit on similar columns as a start of a search on these."""
    scale = problem.rows.scale[near.active]
    useful = np.isfinite(scale)
    alpha = np.maximum(np.exp(near.scales[useful]) / scale[useful] ** 2, problem.least_alpha)
    return Model(near.active[useful], alpha, problem.base_mode(int(useful.sum())))


def feature_relevance(block: ClassificationBlock, weigher: Weigher[None], best: Weighed[None]) -> FloatArray:
    """γ of the kept features (see `relevance`)."""
    kept, fit = best.kept, best.fit
    X, Z = weigher.X[:, kept], weigher.Z[np.ix_(fit.active, kept)]
    shape = weigher.kernel(X, Z, best.theta[kept])
    rows = DenseRows.of(shape.value)
    none = np.zeros(len(Z))
    problem = BernoulliProblem(rows, block.t, block.weight, block.flat_intercept, 0.0, 0.0, none)
    alpha = np.exp(fit.scales)
    mode = problem.find_mode(rows, alpha, problem.base_mode(len(Z)))
    b = np.asarray(problem.sites(rows, mode).precision)
    J = np.column_stack([shape.value, weigher.kernel.jacobian(X, Z, shape, mode.w)])
    if block.flat_intercept:
        J = J - b @ J / b.sum()
    return relevance(np.sqrt(b)[:, None] * J, alpha, best.theta[kept])
