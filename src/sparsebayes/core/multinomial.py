"""The softmax likelihood: the posterior precision that it gives, factorised in the cheaper of two shapes; predictions.

Every class has its own weights, none is the reference: ηₙc = level_c + φₙᵀw_c and p(tₙ = c) = exp ηₙc / Σ exp ηₙc.
Weights are stacked class by class; M counts those that are left, over all classes.

The curvature of a row's likelihood is W = D - D11ᵀD/1ᵀD1 with D = diag(weight · p): diagonal but for one direction.
So the posterior needs an M×M matrix or, when there are more weights than rows, one N×N matrix per class and one that
couples the classes (Rasmussen & Williams 2006, eqs. 3.44 to 3.47). Nothing larger is ever formed.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import block_diag, helmert
from scipy.special import ndtri
from scipy.stats import qmc

from sparsebayes.core.linalg import factorise
from sparsebayes.core.posterior import Reductions
from sparsebayes.core.predictive import quadrature
from sparsebayes.core.special import log_ratio
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray, IntArray

NODES = 2048
"""Pairs of points in the average over the posterior of η; a power of two, as Sobol's points need. The error with three
classes is in `averaged_probabilities`."""
PIVOT = 1e-14
"""Share of the largest variance below which a variance is no more than rounding: some tens of machine epsilons."""
CHUNK = 2**21
"""Numbers that the average holds at a time: 16 MB."""


class ClassRows(Reductions, Protocol):
    """Rows of Φ whose columns can be chosen."""

    def columns(self, which: IntArray | BoolArray | slice) -> FloatArray:
        """Φ[:, which], formed."""

    def keep(self, which: IntArray | BoolArray) -> "ClassRows":
        """Rows of the chosen columns only."""


@dataclass(frozen=True)
class ClassDesigns:
    """Φ_c of every class, without dropped columns; `column` says which of the D features each weight is for."""

    rows: tuple[ClassRows, ...]
    column: tuple[IntArray, ...]

    @property
    def classes(self) -> IntArray:
        """The class of each of the M weights."""
        return np.repeat(np.arange(len(self.column)), [len(columns) for columns in self.column])

    @property
    def features(self) -> IntArray:
        """The feature of each of the M weights."""
        return np.concatenate(self.column)

    def split(self, stacked: AnyArray) -> list[AnyArray]:
        """A stack of weights, class by class."""
        return np.split(stacked, np.cumsum([len(columns) for columns in self.column])[:-1])

    def predict(self, w: FloatArray) -> FloatArray:
        """Φ_c w_c as columns (N×C)."""
        return np.column_stack([rows.predict(part) for rows, part in zip(self.rows, self.split(w), strict=True)])

    def project(self, residual: FloatArray) -> FloatArray:
        """Φ_cᵀ residual_c, stacked."""
        return np.concatenate([rows.project(residual[:, c]) for c, rows in enumerate(self.rows)])

    def outers(self, weight: FloatArray) -> list[FloatArray]:
        """Φ_c diag(weight_c) Φ_cᵀ of every class; classes that still share all columns and weights share the work."""
        done: list[FloatArray] = []
        parts = self.split(weight)
        for c, (rows, part) in enumerate(zip(self.rows, parts, strict=True)):
            twin = next((k for k in range(c) if rows is self.rows[k] and np.array_equal(part, parts[k])), None)
            done.append(rows.outer(part) if twin is None else done[twin])
        return done

    def keep(self, which: BoolArray) -> "ClassDesigns":
        """The same design without some of the weights."""
        parts = self.split(which)
        return ClassDesigns(
            tuple(rows if k.all() else rows.keep(k) for rows, k in zip(self.rows, parts, strict=True)),
            tuple(columns[k] for columns, k in zip(self.column, parts, strict=True)),
        )

    def bare(self) -> "ClassDesigns":
        """The class and feature of each weight, without the rows: all that predictions need."""
        return ClassDesigns((), self.column)


def curvature(p: FloatArray, weight: FloatArray, V: FloatArray) -> FloatArray:
    """W V for directions V of η (N×C, or one row for all), W = -∂² log p(t | η)."""
    return np.asarray(weight[:, None] * p * (V - (p * V).sum(axis=1, keepdims=True)))


class Inverse(Protocol):
    """P⁻¹ for P = A + ΦᵀWΦ, the posterior precision of the weights for given intercepts."""

    logdet: float
    jitter: float

    def solve(self, g: FloatArray) -> FloatArray:
        """P⁻¹g."""

    def eliminate(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For intercepts that move along the columns of U (C×K): X = P⁻¹ΦᵀWU (M×K) and what is left, UᵀWU - UᵀWΦX."""

    def roots(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(d, own, joint) with P⁻¹ = diag(d) - ownᵀ own + jointᵀ joint, where `own` ties weights of one class only."""


class ByWeights:
    """M×M shape. Dividing by √α on both sides keeps the factor safe for α over many decades."""

    def __init__(self, design: ClassDesigns, p: FloatArray, weight: FloatArray, alpha: FloatArray) -> None:
        self.design, self.p, self.weight = design, p, weight
        self.scale = 1 / np.sqrt(alpha)
        half = np.sqrt(weight)[:, None] * p
        Z = np.hstack([rows.columns(slice(None)) * half[:, [c]] for c, rows in enumerate(design.rows)])
        inner = block_diag(*(rows.gram(weight * p[:, c]) for c, rows in enumerate(design.rows))) - Z.T @ Z
        inner *= self.scale[:, None] * self.scale
        inner[np.diag_indices_from(inner)] += 1.0
        self.factor = factorise(inner)
        self.logdet = -self.factor.logdet - float(np.log(alpha).sum())
        self.jitter = self.factor.jitter

    def solve(self, g: FloatArray) -> FloatArray:
        """P⁻¹g."""
        return self.scale * self.factor.solve(self.scale * g)

    def eliminate(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By a solution, and a difference. In a row W u is weight · p ∘ (u - pᵀu)."""
        D, projected = self.weight[:, None] * self.p, self.p @ U
        parts = [rows.project(D[:, [c]] * (U[c] - projected)) for c, rows in enumerate(self.design.rows)]
        weighted = np.concatenate([np.zeros((0, U.shape[1])), *parts])
        X = self.scale[:, None] * self.factor.solve(self.scale[:, None] * weighted)
        whole = (U * D.sum(axis=0)[:, None]).T @ U - (self.weight[:, None] * projected).T @ projected
        return X, np.asarray(whole - weighted.T @ X)

    def roots(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """All is in the joint root."""
        M = len(self.scale)
        return np.zeros(M), np.zeros((0, M)), self.factor.inverse_root() * self.scale


class ByRows:
    """N×N shape: E_c = (K_c + D_c⁻¹)⁻¹ with K_c = Φ_c A_c⁻¹ Φ_cᵀ (given), and G = Σ E_c, which couples the classes.

    Written with √D, so that saturated rows do no harm.
    """

    def __init__(
        self, design: ClassDesigns, p: FloatArray, weight: FloatArray, alpha: FloatArray, K: list[FloatArray]
    ) -> None:
        self.design, self.alpha = design, alpha
        self.own: list[FloatArray] = []
        self.logdet, self.jitter = -float(np.log(alpha).sum()), 0.0
        for half, covariance in zip(np.sqrt(weight[:, None] * p).T, K, strict=True):
            inner = half[:, None] * covariance * half
            inner[np.diag_indices_from(inner)] += 1.0
            factor = factorise(inner)
            self.own.append(factor.inverse_root() * half)  # E = ownᵀ own
            self.logdet -= factor.logdet
            self.jitter = max(self.jitter, factor.jitter)
        self.E = [own.T @ own for own in self.own]
        self.unit = 1 / np.sqrt(weight)
        self.G = factorise(self.unit[:, None] * np.sum(self.E, axis=0) * self.unit)
        self.logdet -= self.G.logdet
        self.jitter = max(self.jitter, self.G.jitter)

    def solve(self, g: FloatArray) -> FloatArray:
        """P⁻¹g = A⁻¹g - A⁻¹Φᵀ (E - E1 G⁻¹ 1ᵀE) ΦA⁻¹g."""
        return (g - self.design.project(self._times_curvature(self.design.predict(g / self.alpha)))) / self.alpha

    def eliminate(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both from QU with Q = E - E1 G⁻¹ 1ᵀE, because P⁻¹ΦᵀW = A⁻¹ΦᵀQ and W - WΦP⁻¹ΦᵀW = Q."""
        weighted = [self._times_curvature(np.tile(u, (len(self.unit), 1))) for u in U.T]
        X = (
            np.array([self.design.project(each) / self.alpha for each in weighted])
            .reshape(len(weighted), len(self.alpha))
            .T
        )
        left = np.array([each.sum(axis=0) for each in weighted]).reshape(len(weighted), len(U))
        return X, np.asarray(left @ U)

    def _times_curvature(self, eta: FloatArray) -> FloatArray:
        weighted = np.column_stack([E @ eta[:, c] for c, E in enumerate(self.E)])
        shared = self.unit * self.G.solve(self.unit * weighted.sum(axis=1))
        return weighted - np.column_stack([E @ shared for E in self.E])

    def roots(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The classes by themselves, and what their coupling adds."""
        own = [rows.project(root.T).T for rows, root in zip(self.design.rows, self.own, strict=True)]
        joint = [self.G.half_solve(self.unit[:, None] * root.T) @ o for root, o in zip(self.own, own, strict=True)]
        return 1 / self.alpha, np.hstack(own) / self.alpha, np.hstack(joint) / self.alpha


@dataclass(frozen=True)
class SoftmaxPosterior:
    """Mode of weights and intercepts, and the covariance there by its roots (see `Inverse.roots`)."""

    design: ClassDesigns
    w: FloatArray
    level: FloatArray
    var: FloatArray
    gamma: FloatArray
    diagonal: FloatArray
    own: FloatArray
    joint: FloatArray
    joint_level: FloatArray
    """Columns of the joint root for the C intercepts."""
    log_evidence: float
    jitter: float
    settled: bool

    def covariance(self) -> FloatArray:
        """Σ of the weights in full (M×M)."""
        classes = self.design.classes
        within = np.where(classes[:, None] == classes, self.own.T @ self.own, 0.0)
        return np.diag(self.diagonal) + self.joint.T @ self.joint - within

    def predictor_covariance(self, Phi: list[FloatArray]) -> FloatArray:
        """Covariance of η (n×C×C) at new rows, given by their kept columns class by class."""
        split = self.design.split
        parts = zip(Phi, split(self.joint.T), self.joint_level.T, strict=True)
        weighted = np.stack([columns @ joint + level for columns, joint, level in parts], axis=1)
        total = weighted @ weighted.transpose(0, 2, 1)
        for c, (columns, diagonal, own) in enumerate(zip(Phi, split(self.diagonal), split(self.own.T), strict=True)):
            total[:, c, c] += columns**2 @ diagonal - ((columns @ own) ** 2).sum(axis=1)
        return np.asarray(total)

    def feature_blocks(self, n_features: int) -> tuple[IntArray, FloatArray]:
        """Where each feature's weight for each class is (D×C, -1: gone), and their covariance (D×C×C; 1 if gone)."""
        C, column = len(self.level), self.design.column
        place = np.full((n_features, C), -1)
        place[self.design.features, self.design.classes] = np.arange(len(self.w))
        Sigma = np.zeros((n_features, C, C))
        for c in range(C):
            for k in range(c):
                both = np.intersect1d(column[c], column[k], assume_unique=True)
                pair = self.joint[:, place[both, c]], self.joint[:, place[both, k]]
                Sigma[both, c, k] = Sigma[both, k, c] = np.einsum("ri,ri->i", *pair)
            Sigma[:, c, c] = np.where(place[:, c] >= 0, self.var[place[:, c]] if len(self.var) else 1.0, 1.0)
        return place, Sigma


def softmax_probabilities(eta: FloatArray) -> FloatArray:
    """Exp η_c / Σ exp η_c along the last axis, for any size of η."""
    p = np.exp(eta - eta.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return np.asarray(p)


def log_odds(p: FloatArray) -> FloatArray:
    """Log-odds of each class against all others."""
    return log_ratio(p, p.sum(axis=1, keepdims=True) - p)


def averaged_probabilities(mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """E[softmax(η)] for η ~ N(mean, covariance), row by row: means n×C, covariances n×C×C.

    Two classes are one logistic integral. More are averaged over fixed points z and -z, which are spread evenly in
    the C - 1 dimensions that the softmax sees. The error for three classes is below 1e-3 up to deviations of 5 in η.
    """
    n, C = mean.shape
    U = helmert(C)  # (C - 1)×C, rows orthonormal and each adding up to zero
    projected = U @ covariance @ U.T
    if C == 2:
        p = quadrature(mean[:, 1] - mean[:, 0], np.maximum(2 * projected[:, 0, 0], 0.0))
        return np.column_stack([1 - p, p])
    root = U.T @ lower_roots(projected)  # η - mean = root z
    nodes = even_normal(NODES, C - 1).T
    result = np.empty((n, C))
    step = max(1, CHUNK // (2 * C * NODES))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        centre, swing = mean[rows, :, None], root[rows] @ nodes
        for sign in (-1, 1):
            eta = np.moveaxis(centre + sign * swing, 1, 2)
            half = 0.5 * softmax_probabilities(eta).mean(axis=1)
            result[rows] = half if sign < 0 else result[rows] + half
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def lower_roots(A: FloatArray) -> FloatArray:
    """L, lower triangular, with L Lᵀ = A for each of n positive semi-definite matrices (n×d×d).

    Not the eigenvectors: their signs are the library's choice, and the average above would depend on it.
    """
    L = np.zeros_like(A)
    rounding = PIVOT * np.diagonal(A, axis1=1, axis2=2).max(axis=1, keepdims=True)
    for j in range(A.shape[1]):
        column = A[:, j:, j] - (L[:, j:, :j] @ L[:, j, :j, None])[:, :, 0]
        L[:, j:, j] = column / np.sqrt(np.where(column[:, :1] > rounding, column[:, :1], np.inf))
    return L


def even_normal(n: int, d: int) -> FloatArray:
    """n points (n×d, n a power of two) spread like a standard normal: Sobol's, moved to the middle of their cells."""
    return np.asarray(ndtri(qmc.Sobol(d, scramble=False).random(n) + 0.5 / n))
