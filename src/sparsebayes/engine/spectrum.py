"""Everything about one set of columns as a function of c, the ratio of prior variance to noise.

M = (I + c Φ_S Φ_Sᵀ)⁻¹ has the same eigenvectors for every c, so that one eigenvalue decomposition gives the marginal
likelihood on a whole grid of c, and s, q and ρ of all columns at any of them. It is taken of Φ_Sᵀ Φ_S or of Φ_S Φ_Sᵀ,
whichever is smaller (docs/mathematics.md, section 9).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sparsebayes.core.types import FloatArray, IntArray


class Spectrum(Protocol):
    """What a chain asks of the columns that are in."""

    def log_volume(self, c: FloatArray) -> FloatArray:
        """log |I + c Φ_S Φ_Sᵀ| for each c."""

    def rest(self, c: FloatArray) -> FloatArray:
        """ρ = tᵀ M t for each c."""

    def factors(self, c: float) -> tuple[FloatArray, FloatArray]:
        """s_j = φ_jᵀ M φ_j and q_j = φ_jᵀ M t of all columns."""

    def inner(self, c: float) -> FloatArray:
        """The small matrix that flips update: (Φ_Sᵀ Φ_S + I/c)⁻¹, or M itself."""


@dataclass(frozen=True)
class OfColumns:
    """From Φ_Sᵀ Φ_S = U diag(e) Uᵀ, for fewer columns than rows."""

    e: FloatArray
    U: FloatArray
    B: FloatArray
    """Uᵀ Φ_Sᵀ Φ."""
    p: FloatArray
    """Uᵀ Φ_Sᵀ t."""
    column_energy: FloatArray
    projection: FloatArray
    energy: float

    @classmethod
    def of(
        cls, gram: FloatArray, inside: IntArray, column_energy: FloatArray, projection: FloatArray, energy: float
    ) -> "OfColumns":
        """From the rows Φ_Sᵀ Φ of the Gram matrix."""
        if not len(inside):
            nothing = np.empty((0, gram.shape[1]))
            return cls(np.empty(0), np.empty((0, 0)), nothing, np.empty(0), column_energy, projection, energy)
        e, U = np.linalg.eigh(gram[:, inside])
        return cls(np.maximum(e, 0.0), U, U.T @ gram, U.T @ projection[inside], column_energy, projection, energy)

    def log_volume(self, c: FloatArray) -> FloatArray:
        """Σ log(1 + c e)."""
        return np.asarray(np.log1p(np.multiply.outer(c, self.e)).sum(axis=-1))

    def rest(self, c: FloatArray) -> FloatArray:
        """‖t‖² less what the columns explain."""
        return np.asarray(self.energy - (self.p**2 / (self.e + 1 / np.asarray(c)[..., None])).sum(axis=-1))

    def factors(self, c: float) -> tuple[FloatArray, FloatArray]:
        """By subtraction from the empty set's; what that leaves no digits of counts as explained."""
        share = 1 / (self.e + 1 / c)
        s = self.column_energy - share @ self.B**2
        q = self.projection - (share * self.p) @ self.B
        lost = s < LOST * self.column_energy
        s[lost], q[lost] = 0.0, 0.0
        return s, q

    def inner(self, c: float) -> FloatArray:
        """(Φ_Sᵀ Φ_S + I/c)⁻¹."""
        return (self.U / (self.e + 1 / c)) @ self.U.T


LOST = 1e-10
"""A column of which less than this share is left is a combination of those inside, up to rounding."""


@dataclass(frozen=True)
class OfRows:
    """From Φ_S Φ_Sᵀ = U diag(e) Uᵀ, for more columns than rows."""

    e: FloatArray
    U: FloatArray
    B: FloatArray
    """Uᵀ Φ."""
    p: FloatArray
    """Uᵀ t."""
    beyond: float
    """Squared length of the part of the target that no column can reach."""

    @classmethod
    def of(cls, rows: FloatArray, inside: IntArray, t: FloatArray, beyond: float) -> "OfRows":
        """From all columns Φ."""
        chosen = rows[:, inside]
        e, U = np.linalg.eigh(chosen @ chosen.T)
        return cls(np.maximum(e, 0.0), U, U.T @ rows, U.T @ t, beyond)

    def log_volume(self, c: FloatArray) -> FloatArray:
        """Σ log(1 + c e)."""
        return np.asarray(np.log1p(np.multiply.outer(c, self.e)).sum(axis=-1))

    def rest(self, c: FloatArray) -> FloatArray:
        """Σ p²/(1 + c e)."""
        return np.asarray((self.p**2 / (1 + np.multiply.outer(c, self.e))).sum(axis=-1) + self.beyond)

    def factors(self, c: float) -> tuple[FloatArray, FloatArray]:
        """Sums of positive terms."""
        share = 1 / (1 + c * self.e)
        return share @ self.B**2, (share * self.p) @ self.B

    def inner(self, c: float) -> FloatArray:
        """M."""
        return (self.U / (1 + c * self.e)) @ self.U.T
