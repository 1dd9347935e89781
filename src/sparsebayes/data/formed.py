"""A few columns, formed: what a model keeps is small, and is used many times."""

import numpy as np

from sparsebayes.core.linalg import weighted_gram
from sparsebayes.core.types import BoolArray, FloatArray, IntArray, Scalar


def under_weight(Phi: FloatArray, weight: FloatArray, centre: bool) -> tuple[FloatArray, FloatArray]:
    """Columns less their weighted means if `centre`, and rows multiplied by √weight; and these means."""
    means = weight @ Phi / weight.sum() if centre else np.zeros(Phi.shape[1])
    Phi = Phi - means
    Phi *= np.sqrt(weight)[:, None]
    return Phi, means


class FormedColumns:
    """The design Φ - 1 meanᵀ, with Φ in memory as it is; `mean` is zero unless a flat intercept was eliminated."""

    def __init__(self, Phi: FloatArray, mean: FloatArray | None = None) -> None:
        self.Phi = Phi
        self._mean = mean

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.Phi)

    @property
    def n_columns(self) -> int:
        """M."""
        return int(self.Phi.shape[1])

    @property
    def is_plain(self) -> bool:
        """Whether Φ in memory, row by row, is all there is."""
        return self._mean is None and self.Phi.flags.c_contiguous

    @property
    def usable(self) -> BoolArray:
        """All: what is kept is not constant."""
        return np.ones(self.n_columns, dtype=bool)

    @property
    def offset(self) -> FloatArray:
        """Where the columns are measured from since they were centred, in standard units."""
        return np.zeros(self.n_columns) if self._mean is None else self._mean

    def centred(self, weight: FloatArray) -> "FormedColumns":
        """The columns less their weighted means, which eliminates a flat intercept."""
        return FormedColumns(self.Phi, weight @ self.Phi / weight.sum())

    def gram(self, weight: FloatArray | Scalar = 1.0) -> FloatArray:
        """Φᵀ diag(weight) Φ. Kept columns are nearly centred, so that little cancels when the mean is taken off."""
        gram = weighted_gram(self.Phi, weight)
        if self._mean is not None:
            sums = weight @ self.Phi if isinstance(weight, np.ndarray) else weight * self.Phi.sum(axis=0)
            total = weight.sum() if isinstance(weight, np.ndarray) else weight * self.n_rows
            cross = np.multiply.outer(self._mean, sums - 0.5 * total * self._mean)
            gram -= cross + cross.T
        return gram

    def outer(self, weight: FloatArray) -> FloatArray:
        """Φ diag(weight) Φᵀ."""
        return weighted_gram(self.columns(slice(None)).T, weight)

    def project(self, rows: FloatArray) -> FloatArray:
        """Φᵀ rows."""
        product = self.Phi.T @ rows
        return np.asarray(product if self._mean is None else product - np.multiply.outer(self._mean, rows.sum(axis=0)))

    def predict(self, weights: FloatArray) -> FloatArray:
        """Φ weights."""
        product = np.asarray(self.Phi @ weights)
        return product if self._mean is None else np.asarray(product - self._mean @ weights)

    def row_variance(self, root: FloatArray) -> FloatArray:
        """‖root φₙ‖² per row."""
        product = np.asarray(self.Phi @ root.T)
        if self._mean is not None:
            product -= root @ self._mean
        return np.asarray(np.einsum("ij,ij->i", product, product))

    def column_square(self, weight: FloatArray) -> FloatArray:
        """diag(Φᵀ diag(weight) Φ)."""
        columns = self.columns(slice(None))
        return np.asarray(weight @ (columns * columns))

    def columns(self, which: IntArray | BoolArray | slice) -> FloatArray:
        """Φ[:, which]."""
        return self.Phi[:, which] if self._mean is None else self.Phi[:, which] - self._mean[which]

    def keep(self, which: IntArray | BoolArray) -> "FormedColumns":
        """Some of the columns."""
        return FormedColumns(
            np.ascontiguousarray(self.Phi[:, which]), None if self._mean is None else self._mean[which]
        )
