"""Everything about one set of columns as a function of c, the ratio of prior variance to noise.

M = (I + c Φ_S Φ_Sᵀ)⁻¹ has the same eigenvectors for every c, so that one eigenvalue decomposition gives the marginal
likelihood on a whole grid of c, and s, q and ρ of all columns at any of them. It is taken of Φ_Sᵀ Φ_S or of Φ_S Φ_Sᵀ,
whichever is smaller (docs/mathematics.md, section 9). With several targets t has a column for each, and so have p and
q; ρ has an entry for each on its last axis.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sparsebayes.core.types import FloatArray

LOST = 1e-10
"""A column of which less than this share is left is a combination of those inside, up to rounding."""


class Spectrum(Protocol):
    """The numbers of the columns in the set that a chain needs."""

    @property
    def e(self) -> FloatArray:
        """The eigenvalues."""

    def log_volume(self, c: FloatArray) -> FloatArray:
        """log |I + c Φ_S Φ_Sᵀ| for each c."""

    def rest(self, c: FloatArray) -> FloatArray:
        """ρ = tᵀ M t for each c."""

    def inner(self, c: float) -> FloatArray:
        """The small matrix that flips update: (Φ_Sᵀ Φ_S + I/c)⁻¹, or M itself."""

    def factors(self, c: float, others: FloatArray, energy: FloatArray, projection: FloatArray) -> "Factors":
        """s_j = φ_jᵀ M φ_j and q_j = φ_jᵀ M t of all columns."""


Factors = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class OfColumns:
    """From Φ_Sᵀ Φ_S = U diag(e) Uᵀ, for fewer columns than rows; `others` are the rows Φ_Sᵀ Φ of the Gram matrix."""

    e: FloatArray
    U: FloatArray
    p: FloatArray
    """Uᵀ Φ_Sᵀ t."""
    energy: FloatArray | float
    """‖t‖²."""

    @classmethod
    def of(cls, gram: FloatArray, projection: FloatArray, energy: FloatArray | float) -> "OfColumns":
        """From Φ_Sᵀ Φ_S and Φ_Sᵀ t."""
        e, U = np.linalg.eigh(gram)
        return cls(np.maximum(e, 0.0), U, U.T @ projection, energy)

    def log_volume(self, c: FloatArray) -> FloatArray:
        """Σ log(1 + c e)."""
        return np.asarray(np.log1p(np.multiply.outer(c, self.e)).sum(axis=-1))

    def rest(self, c: FloatArray) -> FloatArray:
        """‖t‖² less what the columns explain."""
        return np.asarray(self.energy - (1 / (self.e + 1 / np.asarray(c)[..., None])) @ self.p**2)

    def inner(self, c: float) -> FloatArray:
        """(Φ_Sᵀ Φ_S + I/c)⁻¹."""
        return (self.U / (self.e + 1 / c)) @ self.U.T

    def factors(self, c: float, others: FloatArray, energy: FloatArray, projection: FloatArray) -> Factors:
        """Those of the empty set, less what the set explains; where no digits are left, all is explained."""
        turned, share = self.U.T @ others, 1 / (self.e + 1 / c)
        s = energy - share @ turned**2
        q = projection - turned.T @ (share * self.p.T).T
        lost = s < LOST * energy
        s[lost], q[lost] = 0.0, 0.0
        return s, q


@dataclass(frozen=True)
class OfRows:
    """From Φ_S Φ_Sᵀ = U diag(e) Uᵀ, for more columns than rows; `others` are all columns Φ."""

    e: FloatArray
    U: FloatArray
    p: FloatArray
    """Uᵀ t."""
    beyond: FloatArray | float
    """Squared length of the part of the target that no column can reach."""

    @classmethod
    def of(cls, columns: FloatArray, t: FloatArray, beyond: FloatArray | float) -> "OfRows":
        """From Φ_S."""
        e, U = np.linalg.eigh(columns @ columns.T)
        return cls(np.maximum(e, 0.0), U, U.T @ t, beyond)

    def log_volume(self, c: FloatArray) -> FloatArray:
        """Σ log(1 + c e)."""
        return np.asarray(np.log1p(np.multiply.outer(c, self.e)).sum(axis=-1))

    def rest(self, c: FloatArray) -> FloatArray:
        """Σ p²/(1 + c e)."""
        return np.asarray((1 / (1 + np.multiply.outer(c, self.e))) @ self.p**2 + self.beyond)

    def inner(self, c: float) -> FloatArray:
        """M."""
        return (self.U / (1 + c * self.e)) @ self.U.T

    def factors(self, c: float, others: FloatArray, energy: FloatArray, projection: FloatArray) -> Factors:
        """Sums of positive terms."""
        turned, share = self.U.T @ others, 1 / (1 + c * self.e)
        return share @ turned**2, turned.T @ (share * self.p.T).T
