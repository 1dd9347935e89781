"""Credible sets: small sets of correlated features of which at least one is in the model, with high probability."""

from dataclasses import dataclass

import numpy as np

from sparsebayes.core.types import BoolArray, FloatArray, IntArray

WANTED = 0.95
"""Probability up to which stand-ins are added to a set."""
CLAIMED = 0.9
"""Probability from which on a feature is claimed, or a set is reported."""
ALIKE = 0.5
"""Smallest |correlation| of two features that can stand in for each other (the purity filter of SuSiE)."""
TINY = float(np.finfo(np.float64).tiny)
LIKELY = 0.01
"""Least inclusion probability of a feature in a set."""


@dataclass(frozen=True)
class CredibleSet:
    """Features of which at least one matters, the most probable first."""

    features: IntArray
    probability: float
    """That at least one of them is in the model."""
    purity: float
    """Smallest |correlation| between any two of them; 1 for a single feature."""


def credible_sets(
    features: IntArray, inside: BoolArray, share: FloatArray, probability: FloatArray, correlation: FloatArray
) -> list[CredibleSet]:
    """One set for every effect that the draws are sure of, the surest first.

    Each begins with the most probable feature that no set has yet, and takes in those correlated with it that are in
    the model where its features are not. `inside` has one row per draw and one column for each of `features`, which
    come in any order; `probability` and `correlation` belong to the same features.
    """
    free, counted = probability > LIKELY, inside.astype(np.float64)
    found = []
    for seed in np.argsort(-probability, kind="stable"):
        if not free[seed]:
            continue
        members, sure = _grow(int(seed), free, counted, share, probability, correlation)
        if sure >= CLAIMED:
            free[members] = False
            among = np.abs(correlation[np.ix_(members, members)])
            found.append(CredibleSet(features[members], sure, float(among.min())))
    return sorted(found, key=lambda each: -each.probability)


def _grow(
    seed: int,
    free: BoolArray,
    inside: FloatArray,
    share: FloatArray,
    probability: FloatArray,
    correlation: FloatArray,
) -> tuple[list[int], float]:
    """Add the stand-in that covers most of the draws that are left, until the set is sure or none is left."""
    members, sure = [seed], float(probability[seed])
    candidates = free & (np.abs(correlation[seed]) >= ALIKE)
    candidates[seed] = False
    missing = share * (1 - inside[:, seed])
    # The probability of the first is known better than its share of the draws.
    missing *= (1 - sure) / max(float(missing.sum()), TINY)
    if sure < CLAIMED and missing @ (inside @ candidates == 0) > 1 - CLAIMED:
        return members, sure  # all candidates together would not make a set
    while sure < WANTED and candidates.any():
        covered = np.where(candidates, missing @ inside, 0.0)
        best = int(np.argmax(covered))
        if covered[best] <= 0:
            break
        members.append(best)
        missing = missing * (1 - inside[:, best])
        sure = 1 - float(missing.sum())
        candidates &= np.abs(correlation[best]) >= ALIKE
        candidates[best] = False
    return members, sure
