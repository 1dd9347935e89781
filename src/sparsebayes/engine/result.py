"""What every solver returns: a fitted model in the problem's standard units."""

from dataclasses import dataclass, field

from sparsebayes.core.likelihoods import Likelihood
from sparsebayes.core.posterior import GaussianPosterior
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.least_squares import Solution
from sparsebayes.engine.loop import Trace


@dataclass(frozen=True, kw_only=True)
class Result:
    """A fitted model: columns, precisions, posterior, evidence and certificate."""

    active: IntArray
    alpha: FloatArray
    posterior: GaussianPosterior
    """Of the kept weights."""
    level: float = 0.0
    """Posterior mean of a flat intercept, at the columns' means `origin`, where it is independent of the weights."""
    level_variance: float = 0.0
    origin: FloatArray | float = 0.0
    """Of the kept columns, in standard units."""
    likelihood: Likelihood | None = None
    """With its learned parameters."""
    noise: float = 1.0
    log_evidence: float
    worth: FloatArray
    """Nats that each candidate brings (in the model) or would bring (outside)."""
    gap: float
    """The certificate: nats that the best single change of the model would still bring."""
    converged: bool
    trace: Trace = field(default_factory=Trace)
    noise_at_floor: bool = False

    @property
    def solution(self) -> Solution:
        """The model, as a start for another search."""
        return Solution(self.active, self.alpha, self.noise)
