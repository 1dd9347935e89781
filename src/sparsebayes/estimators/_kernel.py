"""What kernel models share: their parameters, the dictionary of kernel columns, and a fit in the user's units."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from sparsebayes.core.basis import KernelBasis
from sparsebayes.core.kernels import KERNELS, SLOPES
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.lowrank import LowRankRows, NotLowRank
from sparsebayes.engine.evidence_gradient import Evidence
from sparsebayes.engine.width import Fit, choice_price, climb_width, distance_bounds, maximise_width
from sparsebayes.estimators._linear import LinearFit

Kernel = Callable[[FloatArray, FloatArray], FloatArray]

KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions({*KERNELS, "precomputed"}), callable],
    "gamma": [StrOptions({"scale", "evidence"}), Interval(Real, 0, None, closed="neither")],
    "degree": [Interval(Real, 0, None, closed="neither")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "candidates": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "random_state": ["random_state"],
}
PARAMETERS = {
    "linear": (),
    "poly": ("gamma", "coef0", "degree"),
    "rbf": ("gamma",),
    "laplacian": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
}
"""Which of the parameters each kernel has."""
METRICS = {"rbf": "sqeuclidean", "laplacian": "cityblock"}
"""Kernels whose γ can be chosen by evidence, with the distance that they depend on."""
LARGE = 5000
"""Rows from which on a kernel matrix is not formed if it can be had as a short product."""
LARGEST = 50_000_000
"""Numbers in a kernel matrix that is formed; with more, candidates are drawn among the rows."""
BLOCK_NUMBERS = 4_000_000
"""Kernel values of training rows and new rows that are held at a time."""


class KernelMixin:
    """An estimator with the parameters of a kernel."""

    kernel: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


@dataclass(frozen=True)
class Dictionary:
    """The candidate columns of a kernel model: one for each centre, or each column of a precomputed matrix."""

    rows: Any
    """DenseRows or, where that was allowed, LowRankRows; with a column of ones last where the intercept has a prior."""
    indices: IntArray
    """What the columns are called: rows of X as given, rows of `candidates`, or columns of the matrix."""
    own: IntArray
    """For each row the column whose centre is this row alone; -1 where there is none."""
    kernel: Kernel | None = None
    centres: FloatArray | None = None
    X: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    @property
    def ones(self) -> bool:
        """Whether the last column is one of ones."""
        return self.rows.n_columns > len(self.indices)

    def at(self, kernel: Kernel) -> "Dictionary":
        """The same centres with another kernel."""
        assert self.centres is not None
        if isinstance(self.rows, LowRankRows):
            return replace(self, rows=LowRankRows.of(kernel, self.X), kernel=kernel)
        return replace(self, rows=_formed(kernel, self.X, self.centres, self.ones), kernel=kernel)

    def kernel_fit(self, fit: LinearFit, columns: IntArray, **more: Any) -> "KernelFit":
        """A fit on (a choice of) the columns as one that can be asked at new inputs; `columns` names that choice."""
        kept = columns[fit.active]
        known = vars(fit) | {"columns": columns[fit.columns]}
        if self.kernel is not None and self.centres is not None:
            known["basis"] = KernelBasis(self.kernel, self.centres[kept], fit.basis.reference, fit.basis.ones)
        return KernelFit(**(known | more), indices=self.indices[kept])


def dictionary(
    model: Any, X: FloatArray, weight: FloatArray, counts: BoolArray, *, ones: bool, low_rank: bool
) -> Dictionary:
    """The columns that a model's parameters ask for, with γ at "scale" where it is yet to be chosen.

    `counts` says which of the rows that were given are the rows of X; `ones` asks for a column of ones, `low_rank`
    allows large matrices to be approximated for the search.
    """
    places = np.flatnonzero(counts)
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        if model.candidates is not None:
            raise ValueError(
                "The 'candidates' parameter does not go with kernel='precomputed': the columns of the matrix are the "
                "candidates. Leave columns out instead."
            )
        own = np.where(weight > 1, -1, places) if X.shape[1] == len(counts) else np.full(len(X), -1)
        return Dictionary(DenseRows.of(_with_ones(X) if ones else X), np.arange(X.shape[1]), own)
    kernel = kernel_of(model, first_gamma(model.gamma, X, weight))
    low_rank = low_rank and not ones and model.candidates is None and len(X) > LARGE
    if low_rank:
        with suppress(NotLowRank):
            own = own_columns(X, weight, X)
            return Dictionary(LowRankRows.of(kernel, X), places, own, kernel, X, X)
    rows_of_X, centres = _centres(model, X)
    indices = np.arange(len(centres)) if rows_of_X is None else places[rows_of_X]
    if rows_of_X is not None and len(rows_of_X) == len(X):  # no two rows are the same
        own = np.where(weight > 1, -1, np.arange(len(X)))
    else:
        own = own_columns(X, weight, centres)
    return Dictionary(_formed(kernel, X, centres, ones), indices, own, kernel, centres, X)


def _formed(kernel: Kernel, X: FloatArray, centres: FloatArray, ones: bool) -> DenseRows:
    """The kernel columns themselves."""
    K = kernel(X, centres)
    return DenseRows.of(_with_ones(K) if ones else K)


def _with_ones(K: FloatArray) -> FloatArray:
    return np.column_stack([K, np.ones(len(K))])


def has_gamma(model: Any) -> bool:
    """Whether the kernel is one with a γ."""
    return isinstance(model.kernel, str) and "gamma" in PARAMETERS.get(model.kernel, ())


def kernel_of(model: Any, gamma: float) -> Kernel:
    """The model's kernel with its parameters filled in."""
    if not isinstance(model.kernel, str):
        return _Checked(model.kernel)
    values = {name: gamma if name == "gamma" else getattr(model, name) for name in PARAMETERS[model.kernel]}
    return _Checked(partial(KERNELS[model.kernel], **values))


def first_gamma(gamma: str | float, X: FloatArray, weight: FloatArray) -> float:
    """γ as a number: scikit-learn's "scale", 1 / (n_features × variance of all entries of X), unless it is one."""
    if not isinstance(gamma, str):
        return float(gamma)
    share = weight / (weight.sum() * X.shape[1])
    variance = float(share @ ((X - (share @ X).sum()) ** 2).sum(axis=1))
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0


def gamma_of_evidence(
    model: Any,
    book: Dictionary,
    weight: FloatArray,
    fit_at: Callable[[Dictionary, Fit[Any] | None], Fit[Any]],
    evidence: Evidence | None,
) -> tuple[float, Fit[Any]]:
    """The γ of largest evidence, and what `fit_at` made of the dictionary there.

    `evidence` is that of the one problem behind the fits; where there are several, the grid alone decides.
    """
    if model.kernel not in METRICS:
        raise ValueError(f"gamma='evidence' needs one of the kernels {sorted(METRICS)}, not kernel={model.kernel!r}")
    kernel, slope, centres = KERNELS[model.kernel], SLOPES[model.kernel], book.centres
    bounds = distance_bounds(book.X, METRICS[model.kernel])

    def climb_from(gamma: float, fit: Fit[Any]) -> tuple[float, FloatArray]:
        if evidence is None or centres is None or not len(fit.active):
            return gamma, fit.scales
        return climb_width(evidence, kernel, slope, book.X, centres[fit.active], gamma, fit.scales, bounds)

    start = float(np.clip(first_gamma("scale", book.X, weight), *bounds))
    return maximise_width(
        lambda gamma, near: fit_at(book.at(kernel_of(model, gamma)), near),
        climb_from,
        gamma=start,
        bounds=bounds,
        price_at=lambda gamma: choice_price(book.X, kernel_of(model, gamma)),
    )


@dataclass(frozen=True)
class _Checked:
    """A kernel whose values are looked at before they are believed."""

    kernel: Kernel

    def __call__(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            K = np.asarray(self.kernel(X, Z), dtype=np.float64)
        if K.shape != (len(X), len(Z)):
            raise ValueError(
                f"The 'kernel' parameter must map {len(X)} and {len(Z)} rows to a matrix of shape "
                f"{(len(X), len(Z))}, but gave {K.shape}"
            )
        if not np.isfinite(K).all():
            raise ValueError("the kernel gave values that are not finite: scale X, or choose a smaller gamma or degree")
        return K


def _centres(model: Any, X: FloatArray) -> tuple[IntArray | None, FloatArray]:
    """The centres, and which rows of X they are, where they are rows of X. Equal rows are one centre, the first."""
    candidates = model.candidates
    if candidates is None or isinstance(candidates, Integral):
        chosen = _first_of_equals(X)
        if candidates is None:
            candidates = len(chosen)
            if len(X) * candidates > LARGEST:
                candidates = max(LARGEST // len(X), 1)
                warnings.warn(
                    f"a kernel matrix of {len(X)} rows and {len(chosen)} centres is too large to be formed: "
                    f"{candidates} centres were drawn among the rows. Set 'candidates' to say how many, or which.",
                    UserWarning,
                    stacklevel=2,
                )
        if candidates < len(chosen):
            rng = check_random_state(model.random_state)
            chosen = np.sort(rng.choice(chosen, size=int(candidates), replace=False))
        return chosen, X[chosen]
    try:
        centres = check_array(candidates, dtype=np.float64, input_name="candidates")
    except ValueError as error:
        raise ValueError(f"The 'candidates' parameter must be points of the input space: {error}") from error
    if centres.shape[1] != X.shape[1]:
        raise ValueError(
            f"The 'candidates' parameter must hold points with {X.shape[1]} features, as X has; got {centres.shape[1]}"
        )
    return None, centres


def _first_of_equals(X: FloatArray) -> IntArray:
    """Rows that no earlier one is equal to. Where the values of a single column all differ, that is soon said."""
    first = np.sort(X[:, 0])
    if (first[1:] != first[:-1]).all():
        return np.arange(len(X))
    return np.sort(np.unique(X, axis=0, return_index=True)[1])


def own_columns(X: FloatArray, weight: FloatArray, centres: FloatArray) -> IntArray:
    """For each row the column with this row as its centre, if no other row (or repetition of it) is there too."""
    _, place = np.unique(np.concatenate([X, centres]), axis=0, return_inverse=True)
    place = place.ravel()
    here, of_centre = place[: len(X)], place[len(X) :]
    column = np.full(place.max() + 1, -1)
    column[of_centre] = np.arange(len(centres))
    return np.where(np.bincount(here, weight)[here] > 1, -1, column[here])


@dataclass(frozen=True)
class FarVariance:
    """The variance that a basis function at the new point itself would have (RVM*; docs/rvm.md).

    The new point x gets a column k(·, x) with prior precision α* of its own. It sees the training rows as a candidate
    does, with s = k*ᵀC⁻¹k*, and adds e²/(α* + s) to the variance there, where e is what it has at x beyond the model.
    Far from all rows that is k(x, x)²/α*; `signal` is what this shall be.
    """

    X: FloatArray
    weight: FloatArray
    signal: float

    def __call__(self, fit: "KernelFit", X: FloatArray) -> FloatArray:
        """The added variance of these rows."""
        step = max(1, BLOCK_NUMBERS // max(1, len(self.X)))
        blocks = [self._block(fit, X[i : i + step]) for i in range(0, len(X), step)]
        return np.concatenate([np.empty(0), *blocks])

    def _block(self, fit: "KernelFit", X: FloatArray) -> FloatArray:
        assert isinstance(fit.basis, KernelBasis)
        kernel, b = fit.basis.kernel, self.weight / fit.noise_variance
        K = b[:, None] ** 0.5 * kernel(self.X, X)
        felt = fit.root @ (fit.basis(self.X) * b[:, None] ** 0.5).T @ K  # root ΦᵀBk*, with Σ = rootᵀ root
        s = np.maximum(np.einsum("ij,ij->j", K, K) - np.einsum("ij,ij->j", felt, felt), 0.0)
        itself = np.array([kernel(x[None], x[None])[0, 0] for x in X])
        beyond = itself - np.einsum("ij,ji->i", fit.basis(X) @ fit.root.T, felt)
        total = itself**2 + self.signal * s
        return self.signal * beyond**2 / np.where(total > 0, total, np.inf)


@dataclass(frozen=True)
class KernelFit(LinearFit):
    """The posterior of the kept kernel weights: all of a kernel model that predictions need."""

    indices: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    excess: float = 0.0
    """Variance of new observations beyond noise and posterior, from the rows held out one by one."""
    far: FarVariance | None = None
    rate: float = 0.0
    """λ of a Laplace prior; 0 is ARD."""

    @property
    def vectors(self) -> FloatArray | None:
        """The kept centres; none where the kernel was precomputed."""
        return self.basis.centres if isinstance(self.basis, KernelBasis) else None

    def own_variance(self, X: FloatArray) -> FloatArray:
        """Variance of each new observation that it shares with no other."""
        own = np.full(len(X), self.noise_variance + self.excess)
        return own if self.far is None else own + self.far(self, X)
