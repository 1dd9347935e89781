"""What a fitted model keeps or claims, as the outputs of the command line show it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsebayes.app.validation import n_vectors
from sparsebayes.core.types import FloatArray
from sparsebayes.estimators import Choice, Kept, kept
from sparsebayes.inspection.effects import effects_of, weight_label

CREDIBLE = 0.95
"""Probability of the intervals of weights, and of differences between models."""


@dataclass(frozen=True)
class Effect:
    """The weight of a feature or relevance vector for one output or class."""

    name: str
    index: int
    """Column of the feature, or row of the relevance vector."""
    output: str
    """The class; empty if the model has a single set of weights."""
    weight: float
    """With known spreads of the features: the effect of one standard deviation."""
    lower: float
    upper: float
    gain: float
    """Nats of evidence that the feature adds; nan if unknown."""
    frequency: float
    """Share of the folds that keep or claim the feature; nan if unknown."""
    probability: float = np.nan
    """Inclusion probability; nan for a single model."""
    stand_ins: tuple[str, ...] = ()
    """The other features of its credible set."""


@dataclass(frozen=True)
class FeatureSet:
    """A credible set: at least one of these features is in the model."""

    output: str
    names: list[str]
    """The features, as they were added to the set."""
    probability: float
    purity: float
    """Smallest |correlation| between any two of the features."""


@dataclass(frozen=True)
class Size:
    """Posterior of the number of features of one output or class: the median and a range of probability 0.9."""

    output: str
    lower: int
    median: int
    upper: int


@dataclass(frozen=True)
class Selection:
    """What a model keeps or, if it is averaged over models, what it claims."""

    what: str
    """"feature" or "vector" (a row of the training table)."""
    names: list[str]
    """Names of the model's inputs."""
    outputs: list[str]
    effects: list[Effect]
    """Output by output, most important first."""
    ranked: list[Effect]
    """All outputs together, largest weight first."""
    distinct: list[Effect]
    """The largest effect of each feature or vector."""
    frequency: FloatArray
    """Share of the folds that keep or claim each input; empty if unknown."""
    near: list[str]
    """Single model: dropped features whose evidence is close to the threshold for at least one class."""
    asked: float
    """Single model: nats of evidence that one more feature must add; the largest threshold of all classes."""
    n_vectors: float
    """Number of relevance vectors; nan for a linear model."""
    label: str
    """Unit of the weights."""
    per_sd: bool
    """Whether weights are effects of one standard deviation of the feature."""
    signed: bool
    """Whether weights have a direction. Feature weights inside a kernel do not."""
    certain: bool
    """Whether weights have intervals."""
    parts: list[Kept]
    """The same as read from the model, one entry for each output or class."""
    likely: list[Effect]
    """Averaged model: features with an inclusion probability from 0.5 to 0.9, the most probable first."""
    sets: list[FeatureSet]
    """Averaged model: credible sets, the surest first; those of one feature too."""
    sizes: list[Size]
    """Averaged model: the number of features, one entry for each output or class."""

    @property
    def averaged(self) -> bool:
        """Whether the model is averaged over models."""
        return bool(self.sizes)

    @property
    def several(self) -> list[FeatureSet]:
        """Credible sets of more than one feature."""
        return [found for found in self.sets if len(found.names) > 1]


def selection_of(
    model: Any,
    names: Sequence[str],
    spread: Sequence[float] | FloatArray | None = None,
    frequency: Sequence[float] | FloatArray | None = None,
) -> Selection:
    """What a fitted model keeps or claims.

    Without standard deviations of the inputs (`spread`) weights are per unit of the feature.
    """
    share = np.empty(0) if frequency is None else np.asarray(frequency, dtype=np.float64)
    scale = None if spread is None else np.asarray(spread, dtype=np.float64)
    parts = kept(model)
    what, per_sd = parts[0].what, parts[0].what == "feature" and scale is not None
    found = [effect for part in parts for effect in _effects(part, names, scale, share)]
    ranked = sorted(found, key=lambda effect: -abs(effect.weight))
    distinct: dict[int, Effect] = {}
    for effect in ranked:
        distinct.setdefault(effect.index, effect)
    near = dict.fromkeys(int(j) for part in parts for j in part.near_misses())
    choices = [(part, part.choice) for part in parts if part.choice is not None]
    likely = [effect for part, choice in choices for effect in _effects(part.of(choice.likely()), names, scale, share)]
    sets = [found for part, choice in choices for found in _sets(part.output, choice, names)]
    return Selection(
        what=what,
        names=list(names),
        outputs=[part.output for part in parts],
        effects=found,
        ranked=ranked,
        distinct=list(distinct.values()),
        frequency=share,
        near=[names[j] for j in near if j not in distinct],
        asked=max(part.asked for part in parts),
        n_vectors=n_vectors(model),
        label=weight_label(model, per_sd),
        per_sd=per_sd,
        signed=getattr(model, "feature_weights_", None) is None,
        certain=any(np.isfinite(effect.lower) for effect in found),
        parts=parts,
        likely=sorted(likely, key=lambda effect: -effect.probability),
        sets=sorted(sets, key=lambda found: -found.probability),
        sizes=[Size(part.output, *choice.n_features()) for part, choice in choices],
    )


def _effects(part: Kept, names: Sequence[str], scale: FloatArray | None, share: FloatArray) -> list[Effect]:
    """The effects of one output or class, most important first."""
    effects = effects_of(part, scale, CREDIBLE)
    found = []
    for k, j in enumerate(effects.index.tolist()):
        effect = Effect(
            names[j] if part.what == "feature" else f"row {j}",
            j,
            part.output,
            float(effects.weight[k]),
            float(effects.lower[k]),
            float(effects.upper[k]),
            float(effects.gain[k]) if len(effects.gain) else np.nan,
            float(share[j]) if part.what == "feature" and len(share) else np.nan,
        )
        if part.choice is not None:
            others = tuple(names[i] for i in part.choice.stand_ins(j))
            effect = replace(effect, probability=float(part.choice.probability[j]), stand_ins=others)
        found.append(effect)
    return found


def _sets(output: str, choice: Choice, names: Sequence[str]) -> list[FeatureSet]:
    return [
        FeatureSet(output, [names[j] for j in found.features.tolist()], found.probability, found.purity)
        for found in choice.sets
    ]
