"""Simulated linear regressions with a known answer, and scores of how much of it was found."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Linear:
    """`n_true` of `n_features` carry signal: weights ±1 times a factor in [0.5, 1.5] by default, noise sd 1.

    `rho` is the correlation of neighbouring columns (AR(1)); `strength`, if given, is the size of every true weight;
    `unit` multiplies the target, noise included.
    """

    n_samples: int
    n_features: int
    n_true: int = 10
    rho: float = 0.0
    strength: float | None = None
    unit: float = 1.0

    def draw(self, seed, n_test=1000):
        """Train and test data, and the true features."""
        rng = np.random.default_rng([seed, self.n_samples, self.n_features, int(1000 * self.rho)])
        true = np.sort(rng.choice(self.n_features, self.n_true, replace=False))
        sizes = rng.uniform(0.5, 1.5, self.n_true) if self.strength is None else self.strength
        weights = rng.choice([-1.0, 1.0], self.n_true) * sizes
        parts = []
        for n in (self.n_samples, n_test):
            X = rng.standard_normal((n, self.n_features))
            for j in range(1, self.n_features if self.rho else 0):
                X[:, j] = self.rho * X[:, j - 1] + np.sqrt(1 - self.rho**2) * X[:, j]
            parts += [X, self.unit * (X[:, true] @ weights + rng.standard_normal(n))]
        return (*parts, true)

    def __str__(self):
        shape = f"{self.n_samples:,}×{self.n_features:,}, {self.n_true} true"
        shape += f", AR(1) {self.rho}" if self.rho else ""
        return shape + (f", y×{self.unit:g}" if self.unit != 1 else "")


def support_f1(found, true):
    """Harmonic mean of precision and recall of the kept features."""
    hits = len(set(map(int, found)) & set(map(int, true)))
    return 2 * hits / (len(found) + len(true)) if len(found) + len(true) else 1.0


def rmse(y, prediction):
    """Root mean squared error."""
    return float(np.sqrt(np.mean((y - prediction) ** 2)))
