"""The kernel width γ of largest log evidence: starts on a grid, then gradient and search in turns. No cross-validation.

For given kept centres Z the log evidence is a smooth function of γ and the scales (log α, log σ²), and its gradient
costs no more than the evidence (engine/evidence_gradient.py; ∂k/∂γ is in core/kernels.py, SLOPES). Which centres are
worth keeping changes with γ; so `maximise_width` alternates between a search at fixed γ and a climb at fixed centres.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from scipy.spatial.distance import cdist

from sparsebayes.core import prices
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.evidence_gradient import Evidence, maximise_evidence

Model = TypeVar("Model")
Kernel = Callable[..., FloatArray]
"""k(X, Z, gamma=γ)."""

STARTS = 4.0 ** np.arange(-2, 3)
"""First widths to try, as multiples of the given one."""
FINEST = 1.5
"""Between neighbours of the best γ that are farther apart than this factor, the middle is tried too."""
MAX_ROUNDS = 20
FARTHEST_FLAT = 0.1
"""At the smallest γ the exponent of a distance kernel is this for the two points farthest from each other."""
NEIGHBOURS = 10
"""At the largest γ the exponent is one for a row and its neighbour of this rank (or a tenth of the rows): with fewer in
reach a vector fits single observations, and the evidence may like it."""
ENOUGH_ROWS = 2000
"""Rows that say what distances there are, and how many columns are different."""


@dataclass(frozen=True)
class Fit(Generic[Model]):
    """A model that was searched for at one γ."""

    objective: float
    """The log evidence."""
    active: IntArray
    """The kept candidates, in the order of `scales`."""
    scales: FloatArray
    """log α of their weights in units of the kernel columns as they are; for regression then log σ², in units of t."""
    model: Model
    """Whatever the caller wants to have back."""
    price: float = 0.0
    """Nats that a vector costs when widths are compared."""

    @property
    def score(self) -> float:
        """What widths are compared by: the log evidence less the price of the choice among columns."""
        return self.objective - self.price * len(self.active)


def climb_width(
    evidence: Evidence,
    kernel: Kernel,
    slope: Kernel,
    X: FloatArray,
    Z: FloatArray,
    gamma: float,
    scales: FloatArray,
    bounds: tuple[float, float],
) -> tuple[float, FloatArray]:
    """γ and scales of largest evidence on fixed centres Z, from those given; γ stays within bounds."""

    def design(at: FloatArray) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
        gamma = float(np.exp(at[0]))
        return kernel(X, Z, gamma=gamma), lambda by: np.array([gamma * np.vdot(by, slope(X, Z, gamma=gamma))])

    limits = float(np.log(bounds[0])), float(np.log(bounds[1]))
    top = maximise_evidence(evidence, design, np.log([gamma]), [limits], scales, len(Z))
    return float(np.clip(np.exp(top.parameters[0]), *bounds)), top.scales


def maximise_width(
    fit_at: Callable[[float, Fit[Model] | None], Fit[Model]],
    climb_from: Callable[[float, Fit[Model]], tuple[float, FloatArray]],
    *,
    gamma: float,
    bounds: tuple[float, float],
    price_at: Callable[[float], float] = lambda gamma: 0.0,
    tol: float = 1e-2,
) -> tuple[float, Fit[Model]]:
    """The γ of largest score (log evidence less a price per vector), and the fit there.

    Args:
        fit_at: Fits a model at a given γ. Its second argument is a fit at a γ near by to start from, with `scales` that
            suit the new γ already, or None for a search from nothing. Called about twenty times.
        climb_from: Improves γ and scales for the centres of a fit, usually
            `lambda gamma, fit: climb_width(evidence, kernel, slope, X, Z[fit.active], gamma, fit.scales, bounds)`.
            For a kernel without ∂k/∂γ, `lambda gamma, fit: (gamma, fit.scales)` leaves the grid alone to decide.
        gamma: Where to look first; the grid is `STARTS` times this, and goes on while its best is at an end.
        price_at: What a vector costs at a given γ when widths are compared; see `choice_price`.
        bounds: The range of γ. Needed: at either end the evidence can run away (see `distance_bounds`).
        tol: Nats of score below which a rise does not count.

    Deterministic, and never worse than the best of all fits that were made.
    """
    fits: dict[float, Fit[Model]] = {}

    def visit(gamma: float, near: Fit[Model] | None = None) -> None:
        fit = replace(fit_at(gamma, near), price=price_at(gamma))
        if gamma not in fits or fit.score > fits[gamma].score:
            fits[gamma] = fit

    def explore(gamma: float) -> None:
        """From nothing; and from the vectors of the next narrower kernel, which see what a wide one must combine."""
        visit(gamma)
        narrower = min((other for other in fits if other > gamma), default=None)
        if narrower is not None:
            visit(gamma, fits[narrower])

    for start in np.unique(np.clip(gamma * STARTS, *bounds))[::-1]:
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


def _best(fits: dict[float, Fit[Model]]) -> float:
    return max(fits, key=lambda gamma: fits[gamma].score)


def _next_on_grid(fits: dict[float, Fit[Model]], bounds: tuple[float, float]) -> float | None:
    """Beyond the best γ where it is at an end of those seen, or else half-way to a neighbour that is far from it."""
    seen, best = sorted(fits), _best(fits)
    place = seen.index(best)
    for beyond, bound in ((place - 1, bounds[0]), (place + 1, bounds[1])):
        if not 0 <= beyond < len(seen) and best != bound:
            return float(np.clip(best * (4.0 if beyond > place else 0.25), *bounds))
    ratios = {other: max(other / best, best / other) for other in seen[max(place - 1, 0) : place + 2]}
    far = max(ratios, key=lambda other: ratios[other])
    return float(np.sqrt(far * best)) if ratios[far] > FINEST**2 else None


def choice_price(X: FloatArray, kernel: Callable[[FloatArray, FloatArray], FloatArray]) -> float:
    """What the best of many useless kernel columns would seem to be worth (core/prices.py), on some of the rows."""
    rows = _some(X)
    return prices.choice_price(kernel(rows, rows))


def _some(X: FloatArray) -> FloatArray:
    return X[np.linspace(0, len(X) - 1, min(len(X), ENOUGH_ROWS)).astype(np.intp)]


def distance_bounds(X: FloatArray, metric: str = "sqeuclidean") -> tuple[float, float]:
    """The range of γ in which a kernel exp(-γ d) can tell rows of X apart, and still sees more than single rows.

    From nearly a straight line between the farthest rows, to e⁻¹ between a typical row and its tenth neighbour.
    `metric` is "sqeuclidean" for the rbf kernel and "cityblock" for the Laplacian.
    """
    rows = np.unique(_some(X), axis=0)
    if len(rows) < 2:
        raise ValueError("gamma cannot be chosen by evidence: all rows of X are the same; set gamma to a number")
    distance = cdist(rows, rows, metric)
    rank = max(1, min(NEIGHBOURS, len(rows) // 10))
    neighbour = np.partition(distance, rank, axis=1)[:, rank]  # of rank 0 is the row itself
    return FARTHEST_FLAT / float(distance.max()), 1 / float(np.median(neighbour))
