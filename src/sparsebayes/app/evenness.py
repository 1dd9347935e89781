"""Whether intervals and probabilities are right everywhere, not only on average."""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from sparsebayes.core.types import AnyArray, FloatArray

PARTS = 4
LEVEL = 0.05
"""Probability of calling a well calibrated model uneven, all groupings of a study together."""
LEAST = 2.25
"""Least variance of the number of events in a group: that of 25 rows of 90 % intervals. Fewer say nothing."""
FLAT = 1.05
"""Standard deviations whose central 80 % differ by less than this factor do not group the rows."""


@dataclass(frozen=True)
class Group:
    """Rows that are next to each other in some order."""

    low: float
    """Smallest value of what the rows are ordered by."""
    high: float
    n: int
    observed: float
    """Share of the rows in which the event came: inside the interval, or of the class."""
    expected: float
    """The share that the model promises."""


@dataclass(frozen=True)
class Evenness:
    """Observed against promised shares, by quarters of the rows."""

    by: str
    """What the rows are ordered by."""
    groups: list[Group]
    p_value: float
    level: float
    """Below this p-value the difference is no chance."""

    @property
    def uneven(self) -> bool:
        """Whether the shares differ from the promised ones by more than chance allows."""
        return self.p_value < self.level

    @property
    def worst(self) -> Group:
        """The group that falls short most."""
        return min(self.groups, key=lambda group: group.observed - group.expected)


def by_order(by: str, value: FloatArray, came: AnyArray, probability: FloatArray, level: float) -> Evenness | None:
    """Compare events with their probabilities in quarters of the rows, ordered by `value`.

    A quarter has a quarter of the variance of the number of events, so that each tells equally much. For a well
    calibrated model the squared standardised differences add up to a chi-square variable with one degree of freedom
    for each quarter. None if there are too few events.
    """
    order = np.argsort(value, kind="stable")
    variance = (probability * (1 - probability))[order]
    total = variance.sum()
    if total < PARTS * LEAST:
        return None
    part = np.minimum((PARTS * (np.cumsum(variance) - variance / 2) / total).astype(int), PARTS - 1)
    groups, chi = [], 0.0
    for k in range(PARTS):
        rows = order[part == k]
        if not len(rows):
            return None
        difference = float(np.sum(came[rows]) - probability[rows].sum())
        chi += difference**2 / float(variance[part == k].sum())
        shares = float(np.mean(came[rows])), float(probability[rows].mean())
        groups.append(Group(float(value[rows[0]]), float(value[rows[-1]]), len(rows), *shares))
    return Evenness(by, groups, float(chdtrc(PARTS, chi)), level)


def of_intervals(mean: FloatArray, std: FloatArray, inside: AnyArray, coverage: float) -> list[Evenness]:
    """Coverage by predicted value and by predicted standard deviation."""
    promised = np.full(len(mean), coverage)
    low, high = np.quantile(std, [0.1, 0.9])
    orders = {"predicted value": mean} | ({"predicted standard deviation": std} if high > FLAT * low else {})
    found = [by_order(by, value, inside, promised, LEVEL / len(orders)) for by, value in orders.items()]
    return [each for each in found if each is not None]


def of_probabilities(came: AnyArray, probability: FloatArray) -> list[Evenness]:
    """Frequencies by predicted probability."""
    found = by_order("predicted probability", probability, came, probability, LEVEL)
    return [] if found is None else [found]
