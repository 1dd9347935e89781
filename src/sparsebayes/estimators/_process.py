"""Kernel models that keep all vectors they need: a Gaussian process instead of a sparse model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from sparsebayes.core.basis import KernelBasis
from sparsebayes.core.types import AnyArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.lowrank import NotLowRank
from sparsebayes.engine.process import LOG_RATIOS, Features, Signal
from sparsebayes.estimators._kernel import KernelFit, LeftOut
from sparsebayes.estimators._kernel_design import KernelDesign
from sparsebayes.estimators._linear import LinearFit


@dataclass(frozen=True)
class ProcessDesign:
    """The columns of a Gaussian process on a kernel design."""

    design: KernelDesign
    features: Features
    ratio: float
    """Signal to noise, by which the number of centres was chosen."""
    most: int
    """Most centres."""

    @classmethod
    def of(cls, design: KernelDesign, ratio: float, most: int) -> "ProcessDesign":
        """With centres among the candidates; raises NotLowRank where the kernel is not positive definite."""
        assert design.kernel is not None
        assert design.centres is not None
        return cls(design, Features.of(design.kernel, design.X, design.centres, ratio, most), ratio, most)

    def subset(self, rows: IntArray, weight: FloatArray) -> "ProcessDesign":
        """The same for some of the rows, with the same share of them as centres where not all are that it needs."""
        bound = len(self.features.centres) == self.most
        most = max(1, round(self.most * len(rows) / len(self.design.X))) if bound else self.most
        return ProcessDesign.of(self.design.subset(rows, weight), self.ratio, most)

    def among_centres(self) -> KernelDesign:
        """The kernel design with its centres as the only candidates: a smooth kernel has few different columns."""
        design, chosen = self.design, np.sort(self.features.centres)
        assert design.centres is not None
        place = np.full(len(design.indices) + 1, -1)
        place[chosen] = np.arange(len(chosen))
        own = place[design.own_column]
        return replace(design, centres=design.centres[chosen], indices=design.indices[chosen], own_column=own)

    @property
    def columns(self) -> DenseRows:
        """G, as it is."""
        return DenseRows.of(self.features.G)

    def kernel_fit(self, fit: LinearFit, signal: float, **more: Any) -> KernelFit:
        """A fit on the columns G, of weights v ~ N(0, s I), as one on kernel columns, of weights w = L⁻ᵀv."""
        return self.kernel_fits([fit], signal, **more)[0]

    def kernel_fits(self, fits: Sequence[LinearFit], signal: float, **more: Any) -> list[KernelFit]:
        """The same for fits that differ in their means only, and share all other arrays.

        The relevance of a vector is the share of the prior variance of the function there that the data remove.
        """
        L, chosen, design = self.features.L, self.features.centres, self.design
        assert design.kernel is not None
        assert design.centres is not None
        m, fit = len(chosen), fits[0]
        root = fit.root.copy()
        root[:, :m] = solve_triangular(L, fit.root[:, :m].T, lower=True, trans="T").T
        prior = np.einsum("ij,ij->i", L, L)
        at_centres = fit.root[:, :m] @ L.T
        left = np.einsum("ij,ij->j", at_centres, at_centres)
        shared: dict[str, Any] = {
            "basis": KernelBasis(design.kernel, design.centres[chosen], fit.basis.reference @ L.T, fit.basis.ones),
            "root": root,
            "columns": chosen,
            "precision": prior / signal,
            "gamma": np.clip(1 - left / (signal * prior), 0.0, 1.0),
            "worth": np.zeros(len(design.indices)),
            "indices": design.indices[chosen],
            "left_out": LeftOut(signal, L),
        }
        found = []
        for each in fits:
            mean = each.mean.copy()
            mean[:m] = solve_triangular(L, each.mean[:m], lower=True, trans="T")
            own = {"mean": mean, "path": np.array([each.log_evidence])}
            found.append(KernelFit(**(vars(each) | shared | own | more)))
        return found


def process_design(
    vectors: str, design: KernelDesign, find_signal: Callable[[], Signal], most: int
) -> ProcessDesign | None:
    """The Gaussian process that the parameter `vectors` asks for; None where it asks for a sparse model.

    "auto" does without it where there is none: for a precomputed kernel, or one that is not positive definite.
    """
    if vectors == "sparse" or (vectors == "auto" and design.kernel is None):
        return None
    if design.kernel is None:
        raise ValueError("vectors='all' needs a kernel that can be evaluated, not kernel='precomputed'")
    try:
        # Where no target has any spread there is no signal.
        return ProcessDesign.of(design, float(find_signal().ratio.max(initial=np.exp(LOG_RATIOS[0]))), most)
    except NotLowRank as error:
        if vectors == "auto":
            return None
        raise ValueError(f"vectors='all' needs a positive definite kernel: {error}") from error


FOLDS = 5
"""As in scikit-learn."""
MOST_JUDGED = 500
"""Rows on which a sparse model and a Gaussian process are compared."""
MOST_JUDGED_LABELS = 300
"""The same for classes, each of which takes as long as a regression."""

JUDGED_CLASSES = 3
"""Most classes, each against the rest, on which they are compared."""


def judged_classes(design: KernelDesign, codes: AnyArray, weight: FloatArray) -> list[int]:
    """The classes on which rival models are compared: the second of two, or some of more, whatever their names are."""
    order = class_order(nearness(design, weight), codes, weight)
    if len(order) == 2:
        return [1]
    return [int(k) for k in order[:: max(1, len(order) // JUDGED_CLASSES)]]


def class_order(near: FloatArray, codes: AnyArray, weight: FloatArray) -> IntArray:
    """The classes by the mean of their rows' values, which does not depend on their names."""
    total = np.bincount(codes, weight)
    return np.argsort(np.bincount(codes, weight * near) / np.where(total > 0, total, 1.0), kind="stable")


def nearness(design: KernelDesign, weight: FloatArray) -> FloatArray:
    """Kernel value of every row with the mean row, over the largest."""
    assert design.kernel is not None
    near = design.kernel(design.X, (weight @ design.X / weight.sum())[None])[:, 0]
    return np.asarray(near / (np.abs(near).max() or 1.0))


def folds(
    design: KernelDesign, weight: FloatArray, most: int = MOST_JUDGED, labels: AnyArray | None = None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Training and test rows of each fold, in all at most `most` distinct rows.

    Rows are dealt out in the order of their kernel value with the mean row (by class), so that the order of the rows
    does not matter; equal rows go to one fold, because a weight of two is the same as a row that is there twice.
    """
    near = nearness(design, weight)
    key = near
    if labels is not None:
        codes = np.asarray(labels, dtype=np.intp)
        place = np.argsort(class_order(near, codes, weight))
        key = place[codes] + 0.5 * near
    distinct, first, point = np.unique(design.X, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(key[first], kind="stable")
    order = order[np.linspace(0, len(order) - 1, min(len(order), most)).astype(np.intp)]
    fold = np.full(len(distinct), -1)
    fold[order] = np.arange(len(order)) % FOLDS
    of_row = fold[point.ravel()]
    # Rows that are all the same have no fold: none would be left to learn from.
    for k in range(min(FOLDS, len(order)) if len(order) > 1 else 0):
        yield np.flatnonzero((of_row >= 0) & (of_row != k)), np.flatnonzero(of_row == k)
