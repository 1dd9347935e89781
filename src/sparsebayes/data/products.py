"""A design that is known by its products only: ΦᵀΦ and Φᵀt, and a few rows with these products."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sparsebayes.core.types import FloatArray
from sparsebayes.data.dense import DenseRows


class FromProducts(NamedTuple):
    """Rows and a target with given products."""

    design: DenseRows
    t: FloatArray
    projection: FloatArray


def from_products(gram: FloatArray, projection: FloatArray) -> FromProducts:
    """Rows R with RᵀR = `gram`, and t with Rᵀt = `projection`; as many rows as the matrix has rank.

    ‖t‖² is what the columns can explain: with known noise the rest is a constant of the evidence.
    """
    size = np.sqrt(np.maximum(gram.diagonal(), 0.0))
    size = np.where(size > 0, size, 1.0)
    factor, order, rank, _ = lapack.dpstrf(gram / size / size[:, None], lower=0)
    order, rank = order - 1, int(rank)
    upper = np.triu(factor)[:rank]
    R = np.zeros((max(rank, 1), len(gram)))
    R[:rank, order] = upper
    t = np.zeros(len(R))
    if rank:
        t[:rank] = lapack.dtrtrs(upper[:, :rank], (projection / size)[order[:rank]], trans=1)[0]
    design = DenseRows(R * size, np.zeros(len(gram)), np.ones(len(gram)), np.ones(len(R)), _gram=[gram],
                       _square=[gram.diagonal().copy()])  # fmt: skip
    return FromProducts(design, t, projection)
