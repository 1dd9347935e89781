"""One problem for every model: a design, a target, and the choice of likelihood, prior and price."""

from dataclasses import dataclass

import numpy as np

from sparsebayes.core.likelihoods import Likelihood
from sparsebayes.core.prices import FREE, Price
from sparsebayes.core.priors import Prior
from sparsebayes.core.types import FloatArray
from sparsebayes.data.design import Design
from sparsebayes.engine.view import Contact, Mode, Point


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Columns in standard units, a target and row weights; and the prior assumptions."""

    design: Design
    """The candidate columns, not multiplied by the rows' weights."""
    t: FloatArray
    weight: FloatArray
    """How often each row counts."""
    likelihood: Likelihood
    prior: Prior
    price: Price = FREE
    flat_intercept: bool = True
    """Whether there is an intercept with a flat prior, which is integrated out."""
    bounded: bool = False
    """Whether the likelihood is replaced by its Gaussian lower bound; otherwise it is expanded at the mode."""

    def base_level(self, likelihood: Likelihood) -> float:
        """The intercept of the model without weights; 0 where it is not flat."""
        return likelihood.base_level(self.t, self.weight) if self.flat_intercept else 0.0

    def base_mode(self, n_weights: int) -> Mode:
        """No weight, and the best intercept."""
        return Mode(self.likelihood, np.zeros(n_weights), self.base_level(self.likelihood))

    def start(self, n_weights: int) -> Point:
        """Where the first local approximation is taken: at the base mode, or where a bound touches there."""
        if not self.bounded:
            return self.base_mode(n_weights)
        level = self.base_level(self.likelihood)
        return Contact(self.likelihood, self.likelihood.first_contact(self.t, level))
