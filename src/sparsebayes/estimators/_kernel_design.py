"""The kernel that an estimator's parameters describe, its candidate columns, and the choice of its width."""

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from sparsebayes.core.arrays import namespace_of, on_device
from sparsebayes.core.basis import KernelBasis
from sparsebayes.core.kernels import KERNELS, Kernel
from sparsebayes.core.standard_units import StandardisedKernel, StandardUnits
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.lowrank import LowRankRows, NotLowRank
from sparsebayes.engine.process import Signal, Spectrum
from sparsebayes.engine.width import Sample, best_width, distance_bounds
from sparsebayes.estimators._base import threads_for
from sparsebayes.estimators._kernel import KernelFit
from sparsebayes.estimators._linear import LinearFit

KernelFunction = Callable[[FloatArray, FloatArray], FloatArray]
"""A kernel with its parameters filled in."""

LARGE = 5000
"""Rows from which on a low-rank factor takes the place of the kernel matrix. Up to it the matrix has 200 MB, and the
search, which is then exact, takes its whole Gram matrix (data/dense.py, WHOLE_GRAM)."""
MAX_NUMBERS = 50_000_000
"""Most numbers in a kernel matrix that is formed: 400 MB. With more, candidates are drawn among the rows."""
HASHED = 2**20
"""Numbers of inputs whose rows are compared by their bytes, a copy of 8 MB: a fifth of the time of sorting the rows."""


@dataclass(frozen=True)
class CheckedKernel:
    """A kernel whose values are checked."""

    kernel: KernelFunction

    def __call__(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.kernel(X, Z)
            K = K if on_device(X) else np.asarray(K, dtype=np.float64)
        if tuple(K.shape) != (len(X), len(Z)):
            raise ValueError(
                f"The 'kernel' parameter must map {len(X)} and {len(Z)} rows to a matrix of shape "
                f"{(len(X), len(Z))}, but gave {K.shape}"
            )
        if not _is_finite(K):
            raise ValueError("the kernel gave values that are not finite: scale X, or choose a smaller gamma or degree")
        return K


def _is_finite(K: Any) -> bool:
    """Whether all numbers are finite. Their sum of squares answers quickly; where it overflows, all are looked at."""
    if not on_device(K):
        flat = K.ravel(order="K")
        with np.errstate(over="ignore", invalid="ignore"):
            if math.isfinite(flat @ flat):
                return True
    return bool(namespace_of(K).isfinite(K).all())


@dataclass(frozen=True)
class KernelParameters:
    """The parameters kernel, gamma, degree, coef0 and standardize of an estimator."""

    kernel: str | KernelFunction
    gamma: str | float
    degree: float
    coef0: float
    standardize: bool

    @classmethod
    def of(cls, model: Any) -> "KernelParameters":
        """Those of an estimator."""
        return cls(model.kernel, model.gamma, model.degree, model.coef0, model.standardize)

    @property
    def is_precomputed(self) -> bool:
        """Whether X is the design itself."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def record(self) -> Kernel | None:
        """The kernel's entry in the register; None for a function or a precomputed kernel."""
        return KERNELS.get(self.kernel) if isinstance(self.kernel, str) else None

    @property
    def has_gamma(self) -> bool:
        """Whether the kernel has a γ."""
        return self.record is not None and "gamma" in self.record.parameters

    @property
    def by_evidence(self) -> bool:
        """Whether γ is chosen by evidence: the kernel must have a width."""
        return self.gamma == "evidence" and self.record is not None and self.record.metric is not None

    def units(self, X: FloatArray, weight: FloatArray) -> list[StandardUnits | None]:
        """The units in which the kernel may see its inputs, of which the evidence chooses; None is as they are.

        A function of the user gets the rows as they are, and a precomputed kernel has none.
        """
        if not self.standardize or self.record is None:
            return [None]
        deviation = StandardUnits.by_deviation(X, weight)
        return [deviation, StandardUnits.by_range(X, weight)] if self.by_evidence else [deviation]

    def at(self, gamma: float | None, units: StandardUnits | None) -> KernelFunction | None:
        """The kernel as a function of two sets of rows; None for a precomputed one."""
        if not isinstance(self.kernel, str):
            return CheckedKernel(self.kernel)
        if self.record is None:
            return None
        values = {name: gamma if name == "gamma" else getattr(self, name) for name in self.record.parameters}
        kernel: KernelFunction = partial(self.record.value, **values)
        return CheckedKernel(kernel if units is None else StandardisedKernel(kernel, units))


@dataclass(frozen=True)
class ChosenKernel:
    """The kernel of an estimator with all its parameters."""

    gamma: float | None
    """None for a kernel without γ."""
    kernel: KernelFunction | None
    """Of inputs in the units of the data; None for a precomputed kernel."""
    find_signal: Callable[[], Signal]

    @cached_property
    def signal(self) -> Signal:
        """Of a Gaussian process with this kernel."""
        return self.find_signal()


@dataclass(frozen=True)
class Inputs:
    """Rows in some units, and a sample of them; both are formed when they are first asked for."""

    units: StandardUnits | None
    rows: FloatArray
    """In the units of the data."""
    targets: Callable[[], FloatArray]
    weight: FloatArray

    @cached_property
    def X(self) -> FloatArray:
        """The rows in these units."""
        return self.rows if self.units is None else self.units(self.rows)

    @cached_property
    def sample(self) -> Sample:
        """Distinct rows in these units."""
        return Sample.of(self.X, self.targets(), self.weight)


def choose_kernel(
    model: Any,
    X: FloatArray,
    targets: Callable[[], FloatArray],
    weight: FloatArray,
    signal: Callable[[Spectrum], Signal],
    *,
    flat_intercept: bool,
) -> ChosenKernel:
    """The kernel that an estimator's parameters describe; γ may be the one of largest evidence.

    Args:
        targets: Makes the targets, one in each column; they are needed only where γ or a variance is chosen.
        signal: Their evidence under a Gaussian process (engine/process.py).
    """
    parameters = KernelParameters.of(model)
    record = parameters.record
    ways = [Inputs(units, X, targets, weight) for units in parameters.units(X, weight)]

    def signal_at(inputs: Inputs, gamma: float | None) -> Signal:
        kernel, sample = parameters.at(gamma, None), inputs.sample
        assert kernel is not None
        return signal(sample.spectrum(kernel(sample.X, sample.X), flat_intercept))

    chosen, gamma = ways[0], None
    if parameters.has_gamma:
        gamma = scale_gamma(chosen.X, weight) if isinstance(parameters.gamma, str) else float(parameters.gamma)
    # Nothing can be chosen where all rows are the same, or no target has any spread.
    if parameters.by_evidence and len(chosen.sample.X) > 1 and chosen.sample.T.shape[1]:
        assert record is not None
        assert record.metric is not None
        bounds = [distance_bounds(inputs.sample.X, record.metric, centred=flat_intercept) for inputs in ways]
        with threads_for(len(chosen.sample.X) ** 2):
            family, gamma = best_width([partial(signal_at, inputs) for inputs in ways], bounds)
        chosen = ways[family]
    return ChosenKernel(gamma, parameters.at(gamma, chosen.units), partial(signal_at, chosen, gamma))


def scale_gamma(X: FloatArray, weight: FloatArray) -> float:
    """scikit-learn's gamma="scale": 1 / (n_features × variance of all entries of X)."""
    share = weight / (weight.sum() * X.shape[1])
    variance = float(share @ ((X - (share @ X).sum()) ** 2).sum(axis=1))
    return 1 / (X.shape[1] * variance) if variance > 0 else 1.0


@dataclass(frozen=True)
class KernelDesign:
    """The candidate columns of a kernel model: one for each centre, or each column of a precomputed matrix.

    The columns are formed when they are first asked for.
    """

    X: FloatArray = field(repr=False)
    """The rows that count; for a precomputed kernel the matrix."""
    indices: IntArray
    """Names of the columns: rows of X as given, rows of `candidates`, or columns of the matrix."""
    own_column: IntArray
    """For each row the column whose centre is this row alone; -1 where there is none."""
    centres: FloatArray | None = None
    """None for a precomputed kernel."""
    kernel: KernelFunction | None = None
    """None for a precomputed kernel, and as long as it is not known."""
    ones: bool = False
    """Whether a column of ones is the last: an intercept with a prior."""
    low_rank: bool = False
    """Whether a low-rank factor takes the place of the columns; the centres are then the rows of X."""
    given: bool = False
    """Whether the centres were given, and are no rows of X."""

    @property
    def n_columns(self) -> int:
        """Columns, the one of ones included."""
        return len(self.indices) + self.ones

    @cached_property
    def columns(self) -> Any:
        """DenseRows or, if `low_rank`, LowRankRows; not standardised."""
        if self.centres is None:
            K = self.X
        else:
            assert self.kernel is not None
            if self.low_rank:
                return LowRankRows.of(self.kernel, self.X)
            K = self.kernel(self.X, self.centres)
        return DenseRows.of(np.column_stack([K, np.ones(len(K))]) if self.ones else K)

    def at(self, kernel: KernelFunction | None) -> "KernelDesign":
        """The same centres with another kernel."""
        return replace(self, kernel=kernel)

    def subset(self, rows: IntArray, weight: FloatArray) -> "KernelDesign":
        """Some of the rows, with all of them as centres unless the centres were given."""
        X, weight = self.X[rows], weight[rows]
        centres = self.centres if self.given else None
        everyone = np.ones(len(rows), dtype=bool)
        return centred_design(X, weight, everyone, centres, None, kernel=self.kernel, ones=self.ones)

    def kernel_fit(self, fit: LinearFit, columns: IntArray | None = None, **more: Any) -> KernelFit:
        """A fit on the columns, or on a choice `columns` of them, as one that can be evaluated at new inputs."""
        columns = np.arange(self.n_columns) if columns is None else columns
        kept = columns[fit.active]
        known = vars(fit) | {"columns": columns[fit.columns]}
        if self.kernel is not None and self.centres is not None:
            known["basis"] = KernelBasis(self.kernel, self.centres[kept], fit.basis.reference, fit.basis.ones)
        return KernelFit(**(known | more), indices=self.indices[kept])


def precomputed_design(
    X: FloatArray, weight: FloatArray, counts: BoolArray, candidates: Any, *, ones: bool = False
) -> KernelDesign:
    """The columns of a precomputed kernel matrix; `counts` marks which of the given rows are the rows of X."""
    if candidates is not None:
        raise ValueError(
            "The 'candidates' parameter does not go with kernel='precomputed': the columns of the matrix are the "
            "candidates. Leave columns out instead."
        )
    own = np.where(weight > 1, -1, np.flatnonzero(counts)) if X.shape[1] == len(counts) else np.full(len(X), -1)
    return KernelDesign(X, np.arange(X.shape[1]), own, ones=ones)


def centred_design(
    X: FloatArray,
    weight: FloatArray,
    counts: BoolArray,
    candidates: Any,
    random_state: Any,
    *,
    kernel: KernelFunction | None = None,
    ones: bool = False,
    most: int | None = None,
) -> KernelDesign:
    """Columns for the centres that `candidates` asks for (None: all rows, or `most` of them)."""
    rows_of_X, centres = _centres(X, weight, candidates, random_state, most)
    indices = np.arange(len(centres)) if rows_of_X is None else np.flatnonzero(counts)[rows_of_X]
    if rows_of_X is not None and len(rows_of_X) == len(X):  # no two rows are the same
        own = np.where(weight > 1, -1, np.arange(len(X)))
    else:
        own = own_columns(X, weight, centres)
    return KernelDesign(X, indices, own, centres, kernel, ones=ones, given=rows_of_X is None)


def kernel_design(
    model: Any,
    X: FloatArray,
    weight: FloatArray,
    counts: BoolArray,
    kernel: KernelFunction | None,
    *,
    ones: bool = False,
    low_rank: bool = False,
    most: int | None = None,
) -> KernelDesign:
    """The design of an estimator with the parameters `candidates` and `random_state`; None is a precomputed kernel.

    `low_rank` allows large matrices to be approximated for the search. Without `candidates`, `most` rows are centres.
    """
    if kernel is None:
        return precomputed_design(X, weight, counts, model.candidates, ones=ones)
    if low_rank and not ones and model.candidates is None and len(X) > LARGE:
        with suppress(NotLowRank):
            own = own_columns(X, weight, X)
            design = KernelDesign(X, np.flatnonzero(counts), own, X, kernel, low_rank=True)
            design.columns  # noqa: B018  raises NotLowRank where there is no such factor
            return design
    given = X, weight, counts, model.candidates, model.random_state
    return centred_design(*given, kernel=kernel, ones=ones, most=most)


def _centres(
    X: FloatArray, weight: FloatArray, candidates: Any, random_state: Any, most: int | None
) -> tuple[IntArray | None, FloatArray]:
    """The centres, and which rows of X they are, if they are rows of X. Equal rows are one centre, the first."""
    if candidates is not None and not isinstance(candidates, Integral):
        return None, _given_centres(X, candidates)
    chosen = _first_of_equals(X)
    if candidates is not None:
        if candidates < len(chosen):
            rng = check_random_state(random_state)
            chosen = np.sort(rng.choice(chosen, size=int(candidates), replace=False))
        return chosen, X[chosen]
    room = max(MAX_NUMBERS // len(X), 1)
    if room < min(len(chosen), len(X) if most is None else most):
        warnings.warn(
            f"a kernel matrix of {len(X)} rows and {len(chosen)} centres is too large to be formed: {room} of the rows "
            "were taken as centres. Set 'candidates' to say how many, or which.",
            UserWarning,
            stacklevel=2,
        )
    chosen = _evenly(X, weight, chosen, room if most is None else min(room, most))
    return chosen, X if len(chosen) == len(X) else X[chosen]


def _evenly(X: FloatArray, weight: FloatArray, chosen: IntArray, size: int) -> IntArray:
    """So many of the chosen rows, evenly in the order of their distance from the mean, in standard units."""
    if size >= len(chosen):
        return chosen
    standard = StandardUnits.by_deviation(X, weight)(X[chosen])
    order = np.argsort((standard**2).sum(axis=1), kind="stable")
    return np.sort(chosen[order[np.linspace(0, len(order) - 1, size).astype(np.intp)]])


def _given_centres(X: FloatArray, candidates: Any) -> FloatArray:
    try:
        centres = check_array(candidates, dtype=np.float64, input_name="candidates")
    except ValueError as error:
        raise ValueError(f"The 'candidates' parameter must be points of the input space: {error}") from error
    if centres.shape[1] != X.shape[1]:
        raise ValueError(
            f"The 'candidates' parameter must hold points with {X.shape[1]} features, as X has; got {centres.shape[1]}"
        )
    return np.asarray(centres)


def _first_of_equals(X: FloatArray) -> IntArray:
    """Rows that no earlier row is equal to; quick if all rows differ."""
    if _all_differ(X):
        return np.arange(len(X))
    return np.sort(np.unique(X, axis=0, return_index=True)[1])


def _all_differ(X: FloatArray) -> bool:
    """Whether no row is equal to another, by the first column or, of small data, by the bytes of the rows."""
    first = np.sort(X[:, 0])
    if (first[1:] != first[:-1]).all():
        return True
    if X.size > HASHED:
        return False
    rows = np.ascontiguousarray(X + 0.0)  # which makes -0 the same as 0
    return len(set(rows.view(f"V{rows.strides[0]}").ravel().tolist())) == len(X)


def own_columns(X: FloatArray, weight: FloatArray, centres: FloatArray) -> IntArray:
    """For each row the column with this row as its centre, unless another row (or a repetition) is there too."""
    _, point = np.unique(np.concatenate([X, centres]), axis=0, return_inverse=True)
    point = point.ravel()
    of_row, of_centre = point[: len(X)], point[len(X) :]
    column = np.full(point.max() + 1, -1)
    column[of_centre] = np.arange(len(centres))
    return np.where(np.bincount(of_row, weight)[of_row] > 1, -1, column[of_row])
