"""The parameter `groups` of the linear estimators: features that enter and leave together."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsebayes.core.groups import Grouped
from sparsebayes.core.prices import PerUnit
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.model_average import Odds

GROUPS: list[Any] = ["array-like", None]
"""What `groups` may be."""
ATTRIBUTES = ("groups_", "group_relevance_", "group_inclusion_probability_")
"""Fitted attributes that only a model with groups has."""


class GroupsMixin:
    """The parameter `groups`, and the fitted attributes by group."""

    groups: Any
    min_gain: Any
    n_features_in_: int
    relevance_: FloatArray
    _labels: IntArray | None
    """The group of every feature: 0, 1, …; None without groups."""

    def _find_groups(self, missing: list[str]) -> None:
        """Read `groups`; `missing` names the settings without which there are none."""
        self._labels = None
        for name in ATTRIBUTES:
            vars(self).pop(name, None)
        if self.groups is None:
            return
        if not isinstance(self.min_gain, str) and (np.ndim(self.min_gain) or not np.isscalar(self.min_gain)):
            missing = ["min_gain='auto' or one number for all groups", *missing]
        elif not isinstance(self.min_gain, str) and self.min_gain == 0:
            missing = ["a positive min_gain", *missing]
        if missing:
            raise ValueError(f"groups need {' and '.join(missing)}; set them, or groups=None")
        self._labels = labels_of(self.groups, self.n_features_in_)
        self.groups_ = self._labels

    @property
    def _n_units(self) -> int:
        """Groups, or features: as many claims can be made."""
        return self.n_features_in_ if self._labels is None else int(self._labels.max()) + 1

    def _grouped_prior(self, prior: ARD, n_columns: int) -> ARD:
        """The prior of groups instead of single columns; a further column, of ones, is its own group."""
        if self._labels is None:
            return prior
        more = self._n_units + np.arange(n_columns - len(self._labels))
        return Grouped(a=prior.a, b=prior.b, min_alpha=prior.min_alpha, labels=np.append(self._labels, more))

    def _unit_price(self, nats: FloatArray | float, rows: float = np.inf) -> PerUnit:
        """A price per group; n/(n - k) of a learned noise counts columns, of which a group has several."""
        return PerUnit(nats, rows * self._n_units / self.n_features_in_)

    def _group_odds(self, odds: Odds) -> Odds:
        """Prior odds of groups from the prices."""
        return odds if self._labels is None else odds.grouped(self._labels)

    def _store_groups(self) -> None:
        """Fitted attributes by group: the mean relevance, and the inclusion probability."""
        if self._labels is None:
            return
        size = np.bincount(self._labels)
        relevance = np.array([np.bincount(self._labels, row) / size for row in np.atleast_2d(self.relevance_)])
        self.group_relevance_ = relevance.reshape(*self.relevance_.shape[:-1], len(size))
        if hasattr(self, "inclusion_probability_"):
            first = np.unique(self._labels, return_index=True)[1]
            self.group_inclusion_probability_ = np.asarray(self.inclusion_probability_)[..., first]


def labels_of(groups: Any, n_features: int) -> IntArray:
    """The group of every feature, as numbers 0, 1, …: from one label per feature, or from lists of features.

    Labels are numbered in sorted order, lists in theirs; features that no list has are groups of their own.
    """
    lists = isinstance(groups, Sequence) and any(np.ndim(each) == 1 and not isinstance(each, str) for each in groups)
    if lists:
        return _of_lists(groups, n_features)
    labels = np.asarray(groups)
    if labels.shape != (n_features,):
        raise ValueError(
            f"groups has shape {labels.shape}, but X has {n_features} features: give one label for each feature, or a "
            "list of lists of features"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("groups has a label that is not finite")
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.intp)


def _of_lists(groups: Sequence[Any], n_features: int) -> IntArray:
    labels = np.full(n_features, -1, dtype=np.intp)
    for k, group in enumerate(groups):
        features = np.asarray(group)
        if features.ndim != 1 or not len(features) or features.dtype.kind not in "iu":
            raise ValueError(f"group {k} of groups must be a list of column numbers, and not empty")
        if features.min() < 0 or features.max() >= n_features:
            raise ValueError(f"group {k} of groups has column {features.max()}, but X has {n_features} features")
        if len(np.unique(features)) < len(features) or (labels[features] >= 0).any():
            raise ValueError(f"group {k} of groups has a feature that is in a group already")
        labels[features] = k
    alone = labels < 0
    labels[alone] = len(groups) + np.arange(alone.sum())
    return labels
