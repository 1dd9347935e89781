"""Rows of a kernel matrix K(X, X) that is never formed: it is replaced by a pivoted Cholesky factor."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import BLOCK_BYTES, DenseRows
from sparsebayes.data.formed import FormedColumns, under_weight
from sparsebayes.data.on_the_fly import OnTheFly

Kernel = Callable[[FloatArray, FloatArray], FloatArray]

TOLERANCE = 1e-6
"""Largest error of an entry of K, relative to what the entries have beyond a constant. At 1e-4 the search errs."""
MAX_BYTES = 2**30
"""Memory that the factor may take."""
PIVOTS = 256
"""Rows that compete to be the next pivots, and most columns that are made at a time."""
NEAR_GREEDY = 0.25
"""A row of such a round becomes a pivot while it still has this share of the round's largest residual."""
WITNESSES = 8
"""Columns on which a finished factor is compared with the kernel."""


class NotLowRank(ValueError):
    """This kernel matrix has no factor of low rank; use `DenseRows` of the matrix itself."""


@dataclass(frozen=True)
class LowRankRows(OnTheFly):
    """The design Φ = diag(root_weight) (L - 1 (centre L)) Lᵀ diag(1/scale), where L Lᵀ ≈ K(X, X).

    A stand-in for DenseRows in the sequential searches. The reductions over *all* columns are those of the approximate
    matrix, to `TOLERANCE`; `columns`, `keep` and `exact` hand out true kernel columns, so that a model which is fitted
    anew on what the search has kept is exact:

        problem = LeastSquares(design=LowRankRows.of(kernel, X).standardised(weight, centre=True), ...)
        found = solve(problem, "sequential", settings).solution
        exact = replace(problem, design=problem.design.exact(found.active), prior=problem.prior.of(found.active))
        result = solve(exact, "sequential", settings, start=replace(found, active=np.arange(len(found.active))))
    """

    kernel: Kernel
    inputs: FloatArray
    """X; not called so, because the X of DenseRows is the design."""
    L: FloatArray
    residual: FloatArray
    """diag(K - L Lᵀ), which bounds the error of every entry: |K - L Lᵀ|_nm² ≤ residual_n residual_m."""
    scale: FloatArray
    root_weight: FloatArray
    centre: FloatArray | None = None
    """Weights (of sum one) by which the columns' means are taken; None when the columns are not centred."""
    _core: list[FloatArray] = field(default_factory=list, repr=False)
    _gram_columns: dict[int, FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, kernel: Kernel, X: FloatArray, Z: FloatArray | None = None, *, tol: float = TOLERANCE) -> "LowRankRows":
        """The rows of K(X, X) as they are. `kernel` maps two sets of rows to the matrix of their kernel values."""
        if Z is not None and Z is not X and not np.array_equal(Z, X):
            raise NotLowRank(
                "a low-rank kernel matrix needs the candidates to be the rows of X themselves; use DenseRows"
            )
        factor = pivoted_cholesky(kernel, X, tol)
        return cls(kernel, X, factor.L, factor.residual, np.ones(len(X)), np.ones(len(X)))

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.inputs)

    @property
    def n_columns(self) -> int:
        """M = N."""
        return len(self.inputs)

    @property
    def rank(self) -> int:
        """r."""
        return int(self.L.shape[1])

    @property
    def mean(self) -> FloatArray:
        """Mean of every column."""
        return self.L @ self._origin

    def standardised(self, weight: FloatArray, centre: bool) -> "LowRankRows":
        """Rows weighted by √weight, columns centred if `centre` and divided by their weighted root mean square.

        A column that differs from a constant by no more than its own error is constant: its scale is infinity.
        """
        total = weight.sum()
        rows = replace(self, scale=np.ones(self.n_columns))._fresh(np.sqrt(weight), weight / total if centre else None)
        spread = np.sqrt(rows.column_square() / total)
        error = np.sqrt(self.residual * self.residual.max())
        rounding = 8 * np.sqrt(self.n_rows) * np.finfo(np.float64).eps * np.abs(rows.mean)
        scale = np.where(spread <= error + rounding, np.inf, spread)
        return replace(rows, scale=scale)

    def centred(self, weight: FloatArray) -> "LowRankRows":
        """The columns less their weighted means, which eliminates a flat intercept."""
        return self._fresh(self.root_weight, weight / weight.sum())

    def unweighted(self) -> "LowRankRows":
        """The same columns with all rows alike, for likelihoods that take the weights into their sites."""
        return self._fresh(np.ones(self.n_rows), self.centre)

    def under(self, which: IntArray, weight: FloatArray, centre: bool) -> DenseRows:
        """Some true columns, less their weighted means if `centre`, and rows multiplied by √weight."""
        return DenseRows.formed(under_weight(self.columns(which), weight, centre)[0])

    def weighted(self, root_weight: FloatArray) -> "LowRankRows":
        """Each row multiplied by a factor."""
        return self._fresh(self.root_weight * root_weight, self.centre)

    def gram_columns(self, which: IntArray) -> FloatArray:
        """ΦᵀΦ[:, which]."""
        return np.column_stack(
            [np.empty((self.n_columns, 0)), *(self.gram_column(int(j), lambda: which) for j in which)]
        )

    def prepare_gram(self) -> None:
        """Nothing: columns of the Gram matrix are cheap."""

    def rows(self, which: IntArray) -> FloatArray:
        """Some rows of the standardised design, not weighted, from true kernel values."""
        return (self.kernel(self.inputs[which], self.inputs) - self.mean) / self.scale

    @property
    def offset(self) -> FloatArray:
        """Zero: columns that are centred by sites are kept columns, which are formed."""
        return np.zeros(self.n_columns)

    @property
    def known_gram(self) -> FloatArray | None:
        """None: it is never computed as a whole."""
        return None

    def exact(self, which: IntArray | BoolArray | slice) -> DenseRows:
        """The true kernel columns, with their true means and the scales of this design, as rows in memory."""
        K = self.kernel(self.inputs, self.inputs[which])
        mean = np.zeros(K.shape[1]) if self.centre is None else self.centre @ K
        return DenseRows(K, mean, self.scale[which], self.root_weight)

    def columns(self, which: IntArray | BoolArray | slice) -> FloatArray:
        """Φ[:, which], formed from true kernel columns."""
        return self.exact(which).columns(slice(None))

    def keep(self, which: IntArray | BoolArray) -> FormedColumns:
        """The chosen columns only, formed from true kernel columns: a model on them is exact."""
        return FormedColumns(np.ascontiguousarray(self.columns(which)))

    def column_square(self, weight: FloatArray | None = None) -> FloatArray:
        """diag(Φᵀ diag(weight) Φ)."""
        if weight is not None:
            return self.weighted(np.sqrt(weight)).column_square()
        core = self._inner()
        square = np.empty(self.n_columns)
        for rows in self._blocks():
            square[rows] = np.einsum("ij,ij->i", self.L[rows] @ core, self.L[rows])
        return np.maximum(square, 0.0) / self.scale**2

    def gram_column(self, j: int, ahead: Callable[[], IntArray]) -> FloatArray:
        """Φᵀφ_j, computed once, together with those that `ahead` expects to be asked for next."""
        if j not in self._gram_columns:
            wanted = [j, *(int(i) for i in ahead() if i != j and i not in self._gram_columns)]
            inner = self._inner() @ (self.L[wanted] / self.scale[wanted, None]).T
            block = np.asfortranarray((self.L @ inner) / self.scale[:, None])
            self._gram_columns.update({i: block[:, k] for k, i in enumerate(wanted)})
        return self._gram_columns[j]

    def project(self, rows: FloatArray) -> FloatArray:
        """Φᵀ rows."""
        weighted = (self.root_weight * rows.T).T
        inner = self.L.T @ weighted - np.multiply.outer(self._origin, weighted.sum(axis=0))
        return np.asarray(((self.L @ inner).T / self.scale).T)

    def predict(self, weights: FloatArray) -> FloatArray:
        """Φ weights."""
        inner = self.L.T @ (weights / self.scale)
        return np.asarray(self.root_weight * (self.L @ inner - self._origin @ inner))

    def row_variance(self, root: FloatArray) -> FloatArray:
        """‖root φₙ‖² per row."""
        inner = self.L.T @ (root / self.scale).T
        product = self.L @ inner - self._origin @ inner
        return np.asarray(self.root_weight**2 * (product**2).sum(axis=1))

    @property
    def _origin(self) -> FloatArray:
        """Mean row of L."""
        return np.zeros(self.rank) if self.centre is None else self.centre @ self.L

    def _inner(self) -> FloatArray:
        """(L - 1 origin)ᵀ diag(root_weight²) (L - 1 origin), of which ΦᵀΦ is the sandwich between L/scale."""
        if not self._core:
            core, origin = np.zeros((self.rank, self.rank)), self._origin
            for rows in self._blocks():
                block = (self.L[rows] - origin) * self.root_weight[rows, None]
                core += block.T @ block
            self._core.append(core)
        return self._core[0]

    def _blocks(self) -> Iterator[slice]:
        step = max(1, 8 * BLOCK_BYTES // (8 * max(1, self.rank)))
        for start in range(0, self.n_rows, step):
            yield slice(start, start + step)

    def _fresh(self, root_weight: FloatArray, centre: FloatArray | None) -> "LowRankRows":
        """Other weights and centre, and nothing that was computed with the old ones."""
        return LowRankRows(self.kernel, self.inputs, self.L, self.residual, self.scale, root_weight, centre)


class Factor(NamedTuple):
    """A pivoted Cholesky factor, L (N×r) with K(X, X) ≈ L Lᵀ."""

    L: FloatArray
    diagonal: FloatArray
    """diag(K)."""
    residual: FloatArray
    """diag(K - L Lᵀ)."""
    pivots: IntArray
    """The row that each column of L belongs to."""


def pivoted_cholesky(kernel: Kernel, X: FloatArray, tol: float, *, most: int | None = None) -> Factor:
    """The factor of K(X, X) to a tolerance, or with `most` columns.

    The first pivot takes out what is (nearly) constant in K; what then is left on the diagonal tells rows apart, and
    `tol` is relative to its largest value. Pivots come in rounds: the rows of largest residual compete in a small
    pivoted Cholesky factorisation, and the columns of those that it takes are made in one matrix product.
    """
    itself = diagonal(kernel, X)
    _check(bool((itself >= 0).all()), "some k(x, x) is negative")
    # Rounding of a residual: a difference of sums of about this size, with as many terms as the factor has columns.
    rounding = 64 * float(np.finfo(np.float64).eps) * float(itself.max(initial=0.0))
    n = len(X)
    room = min(n, MAX_BYTES // (8 * max(1, n)), n if most is None else most)
    factor, chosen, rank, residual, stop = np.empty((n, room), order="F"), np.empty(room, np.intp), 0, itself, rounding
    while residual.max(initial=0.0) > stop and rank != most:
        L = factor[:, :rank]
        rivals = _largest(residual, PIVOTS if rank else 1)
        order, C = _contest(kernel(X[rivals], X[rivals]) - L[rivals] @ L[rivals].T, stop)
        pivots = rivals[order]
        if most is not None:
            pivots, C = pivots[: most - rank], C[: most - rank, : most - rank]
        new = slice(rank, rank + len(pivots))
        if new.stop > room:
            raise NotLowRank(
                f"the kernel matrix of {n} rows has more than {rank} independent columns at a tolerance of {tol:g}, "
                f"and its factor would take more than {MAX_BYTES / 2**30:g} GiB; use a wider kernel (smaller gamma) "
                "or DenseRows of fewer candidates"
            )
        columns = kernel(X, X[pivots]) - L @ L[pivots].T
        factor[:, new] = lapack.dtrtrs(C, columns.T, lower=1)[0].T
        residual = residual - np.einsum("ij,ij->i", factor[:, new], factor[:, new])
        residual[pivots], chosen[new] = 0.0, pivots
        _check(residual.min() >= -max(stop, rounding), "a residual k(x, x) - ‖l‖² became negative")
        residual = np.maximum(residual, 0.0)
        if rank == 0:
            stop = max(tol * float(residual.max()), rounding)
        rank = new.stop
    L = factor[:, :rank]
    if rank != most:
        _compare(kernel, X, L, residual, stop)
    return Factor(L, itself, residual, chosen[:rank])


def diagonal(kernel: Kernel, X: FloatArray, step: int = 64) -> FloatArray:
    """k(x, x) of every row, from small squares of the matrix."""
    squares = [np.diag(kernel(X[i : i + step], X[i : i + step])) for i in range(0, len(X), step)]
    return np.concatenate([np.empty(0), *squares])


def _largest(values: FloatArray, k: int) -> IntArray:
    """Indices of the k largest values, the largest first; of equals the first."""
    return np.argsort(-values, kind="stable")[:k]


def _contest(schur: FloatArray, stop: float) -> tuple[IntArray, FloatArray]:
    """Which of these rows become pivots, and the Cholesky factor of their square."""
    least = max(stop, NEAR_GREEDY * float(np.diag(schur).max()))
    factor, order, rank, _ = lapack.dpstrf(schur, tol=least, lower=1)
    _check(rank > 0, "a pivot is not positive")
    return np.asarray(order[:rank] - 1, dtype=np.intp), np.tril(factor[:rank, :rank])


def _compare(kernel: Kernel, X: FloatArray, L: FloatArray, residual: FloatArray, stop: float) -> None:
    """Check some entries: if K is not positive definite, they can be large although the residual diagonal is small."""
    witnesses = np.unique(np.append(np.argmax(residual), np.linspace(0, len(X) - 1, WITNESSES).astype(np.intp)))
    error = kernel(X, X[witnesses]) - L @ L[witnesses].T
    _check(bool((np.abs(error) <= 2 * stop).all()), "a column of it is not reproduced")


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise NotLowRank(f"the kernel matrix is not positive definite ({what}); use DenseRows of the matrix itself")
