"""A fitted softmax model in the user's units."""

from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.core.multinomial import averaged_probabilities, softmax_probabilities
from sparsebayes.core.types import FloatArray
from sparsebayes.data.source import design_of
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.softmax import SoftmaxFit


@dataclass(frozen=True)
class JointFit:
    """What the softmax solver found, with the means and scales of the columns that it saw."""

    fit: SoftmaxFit
    mean: FloatArray
    scale: FloatArray
    n_features: int
    price: float
    trace: Trace

    @property
    def coef(self) -> FloatArray:
        """Weights per unit of input (C×D)."""
        return (self.fit.coef / self.scale)[:, : self.n_features]

    @property
    def intercept(self) -> FloatArray:
        """Predictor of each class at x = 0."""
        ones = self.fit.coef[:, self.n_features :].sum(axis=1)
        return self.fit.intercept + ones - self.coef @ self.mean[: self.n_features]

    @property
    def relevance(self) -> FloatArray:
        """γ of each weight."""
        return self.fit.gamma[:, : self.n_features]

    @property
    def precision(self) -> FloatArray:
        """Prior precisions of the weights per unit of input; ∞ for dropped weights."""
        with np.errstate(invalid="ignore"):
            return (self.fit.alpha * self.scale**2)[:, : self.n_features]

    @property
    def covariance(self) -> FloatArray:
        """Posterior covariance of the kept weights, class by class."""
        unit = self.scale[self.fit.posterior.design.features]
        return self.fit.posterior.covariance() / np.outer(unit, unit)

    def latent(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of every row's predictors."""
        rows = design_of(X, ones=len(self.scale) > self.n_features)
        return self.fit.latent(replace(rows, mean=self.mean, scale=self.scale))

    def probabilities(self, X: FloatArray, average: bool) -> FloatArray:
        """Class probabilities, averaged over the posterior or at its mean."""
        mean, covariance = self.latent(X)
        return averaged_probabilities(mean, covariance) if average else softmax_probabilities(mean)

    def weight_samples(self, n_samples: int, rng: np.random.RandomState) -> tuple[FloatArray, FloatArray]:
        """Draws of the weights (n×C×D), with the intercepts (n×C) that keep the predictor at the reference point."""
        design, posterior = self.fit.posterior.design, self.fit.posterior
        covariance = posterior.covariance()
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = posterior.w + rng.standard_normal((n_samples, len(posterior.w))) @ root.T
        standard = np.zeros((n_samples, *self.fit.coef.shape))
        standard[:, design.classes, design.features] = draws
        coef = (standard / self.scale)[..., : self.n_features]
        reference = self.mean[: self.n_features] + (self.fit.origin * self.scale)[: self.n_features]
        level = self.intercept + self.coef @ reference
        return coef, level - coef @ reference
