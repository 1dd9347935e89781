"""The kernel width γ of largest log evidence, without cross-validation: a grid, then gradient and search in turns.

For given centres Z the log evidence is a smooth function of γ and the scales (log α, log σ²), and its gradient costs no
more than the evidence (engine/evidence_gradient.py). Which centres are worth keeping changes with γ. So
`maximise_width` alternates between a search at fixed γ and a maximisation at fixed centres.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from sparsebayes.core import prices
from sparsebayes.core.kernels import Kernel
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.evidence_gradient import Evidence, maximise_evidence
from sparsebayes.engine.least_squares import Solution

GRID_FACTOR = 4.0
"""Ratio of neighbouring γ on the first grid: the kernel's range changes by two, and the maximisation that follows
reaches every width between two neighbours."""
GRID = GRID_FACTOR ** np.arange(-2, 3)
"""First grid, as multiples of the given γ. It is continued while its best value is at an end."""
FINEST_RATIO = 1.5
"""The grid is refined until the neighbours of its best γ are within this factor squared. A search from nothing at each
of them is a safeguard: a maximisation at fixed centres can stop at a poor set of centres."""
MAX_ROUNDS = 20
"""Most turns of maximisation and search. Two to five are usual; every turn must gain `tol` nats."""
MIN_EXPONENT = 0.1
"""At the smallest γ the exponent γd of the two farthest rows: the kernel is then a straight line to 5 %."""
NEIGHBOURS = 10
"""At the largest γ the exponent γd is one for a row and its neighbour of this rank (or of a tenth of the rows). With
fewer neighbours in reach a vector fits single rows, and the evidence may reward that."""
SAMPLE_ROWS = 2000
"""Rows from which distances and the number of different columns are taken. Their matrix has 32 MB."""


@dataclass(frozen=True)
class VectorFit:
    """A model on kernel columns, as it is compared with others and continued on other columns of the same centres."""

    objective: float
    """The log evidence, less the prices that the search charged."""
    active: IntArray
    """The kept candidates, in the order of `scales`."""
    scales: FloatArray
    """log α of their weights for columns as they are (not standardised); for regression then log σ², for target t."""
    solutions: tuple[Solution, ...] = ()
    """The models of all outputs in standard units, where a caller wants to start from them."""
    price: float = 0.0
    """Nats that a vector costs when widths are compared."""

    @property
    def noise(self) -> float:
        """σ² of a regression."""
        return float(np.exp(self.scales[-1]))

    @property
    def score(self) -> float:
        """What widths are compared by: the log evidence less the price of the choice among columns."""
        return self.objective - self.price * len(self.active)


def climb_width(
    evidence: Evidence,
    kernel: Kernel,
    X: FloatArray,
    Z: FloatArray,
    gamma: float,
    scales: FloatArray,
    bounds: tuple[float, float],
) -> tuple[float, FloatArray]:
    """γ and scales of largest evidence on fixed centres Z, from those given; γ stays within bounds."""
    slope = kernel.slope
    if slope is None:
        raise ValueError("a kernel without a slope has no width to maximise over")

    def design(at: FloatArray) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        gamma = float(np.exp(at[0]))
        return kernel(X, Z, gamma=gamma), lambda by: np.array([gamma * np.vdot(by, slope(X, Z, gamma=gamma))])

    limits = float(np.log(bounds[0])), float(np.log(bounds[1]))
    top = maximise_evidence(evidence, design, np.log([gamma]), [limits], scales, len(Z))
    return float(np.clip(np.exp(top.parameters[0]), *bounds)), top.scales


def maximise_width(
    fit_at: Callable[[float, VectorFit | None], VectorFit],
    climb_from: Callable[[float, VectorFit], tuple[float, FloatArray]],
    *,
    gamma: float,
    bounds: tuple[float, float],
    price_at: Callable[[float], float] = lambda gamma: 0.0,
    tol: float = 1e-2,
) -> tuple[float, VectorFit]:
    """The γ of largest score (log evidence less a price per vector), and the fit there.

    Args:
        fit_at: Fits a model at a given γ. Its second argument is None for a search from nothing; otherwise it is a fit
            at a similar γ to start from, with `scales` that suit the new γ. Called about twenty times.
        climb_from: Improves γ and scales for the centres of a fit, usually
            `lambda gamma, fit: climb_width(evidence, kernel, X, Z[fit.active], gamma, fit.scales, bounds)`.
            With `lambda gamma, fit: (gamma, fit.scales)` only the grid decides.
        gamma: Centre of the first grid.
        bounds: The range of γ. At either end the evidence can grow without limit (see `distance_bounds`).
        price_at: What a vector costs at a given γ when widths are compared; see `choice_price`.
        tol: Nats of score by which a turn must improve. A hundredth is far below what tells two models apart.

    Deterministic, and never worse than the best of all fits that were made.
    """
    fits: dict[float, VectorFit] = {}

    def visit(gamma: float, near: VectorFit | None = None) -> None:
        fit = replace(fit_at(gamma, near), price=price_at(gamma))
        if gamma not in fits or fit.score > fits[gamma].score:
            fits[gamma] = fit

    def explore(gamma: float) -> None:
        """Search from nothing, and from the next narrower kernel: its vectors show what a wide one must combine."""
        visit(gamma)
        narrower = min((other for other in fits if other > gamma), default=None)
        if narrower is not None:
            visit(gamma, fits[narrower])

    for start in np.unique(np.clip(gamma * GRID, *bounds))[::-1]:
        explore(float(start))
    while (further := _next_on_grid(fits, bounds)) is not None:
        explore(further)
    for _ in range(MAX_ROUNDS):
        here = _best(fits)
        before = fits[here].score
        there, scales = climb_from(here, fits[here])
        visit(there, replace(fits[here], scales=scales))
        if fits[_best(fits)].score <= before + tol:
            visit(there)  # the search from the old centres may be stuck where one from nothing is not
        if fits[_best(fits)].score <= before + tol:
            break
    return _best(fits), fits[_best(fits)]


def _best(fits: dict[float, VectorFit]) -> float:
    return max(fits, key=lambda gamma: fits[gamma].score)


def _next_on_grid(fits: dict[float, VectorFit], bounds: tuple[float, float]) -> float | None:
    """Beyond the best γ if it is at an end of the grid, or half-way to a neighbour that is far from it."""
    seen, best = sorted(fits), _best(fits)
    position = seen.index(best)
    for beyond, bound in ((position - 1, bounds[0]), (position + 1, bounds[1])):
        if not 0 <= beyond < len(seen) and best != bound:
            return float(np.clip(best * (GRID_FACTOR if beyond > position else 1 / GRID_FACTOR), *bounds))
    ratios = {other: max(other / best, best / other) for other in seen[max(position - 1, 0) : position + 2]}
    far = max(ratios, key=lambda other: ratios[other])
    return float(np.sqrt(far * best)) if ratios[far] > FINEST_RATIO**2 else None


def choice_price(X: FloatArray, kernel: Callable[[FloatArray, FloatArray], FloatArray]) -> float:
    """What the best of many useless kernel columns would seem to be worth (core/prices.py), from some of the rows."""
    rows = _sample_rows(X)
    return prices.choice_price(kernel(rows, rows))


def _sample_rows(X: FloatArray) -> FloatArray:
    return X[np.linspace(0, len(X) - 1, min(len(X), SAMPLE_ROWS)).astype(np.intp)]


def distance_bounds(X: FloatArray, metric: str = "sqeuclidean") -> tuple[float, float]:
    """The range of γ in which a kernel exp(-γd) can tell rows of X apart and still sees more than single rows.

    From nearly a straight line between the farthest rows to e⁻¹ between a typical row and its tenth neighbour.
    `metric` is "sqeuclidean" for the rbf kernel and "cityblock" for the Laplacian.
    """
    rows = np.unique(_sample_rows(X), axis=0)
    if len(rows) < 2:
        raise ValueError("gamma cannot be chosen by evidence: all rows of X are the same; set gamma to a number")
    distance = cdist(rows, rows, metric)
    rank = max(1, min(NEIGHBOURS, len(rows) // 10))
    neighbour = np.partition(distance, rank, axis=1)[:, rank]  # rank 0 is the row itself
    return MIN_EXPONENT / float(distance.max()), 1 / float(np.median(neighbour))
