"""What models of the noise say: rows whose target looks wrong, and features on which the noise depends."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsebayes.app.study import Study
from sparsebayes.app.words import NO_BREAK, count, name, number, percent


@dataclass(frozen=True)
class Outlier:
    """A training row that is more likely wrong than right."""

    row: int
    """Its place in the study's X, from 0."""
    probability: float
    truth: float
    predicted: float
    """By the fit without its fold."""


@dataclass(frozen=True)
class NoiseTerm:
    """A feature on which the noise depends."""

    feature: str
    factor: float
    """By which the noise's standard deviation changes with one standard deviation of the feature."""


@dataclass(frozen=True)
class NoiseFacts:
    """Of models of outliers or of unequal noise; None where the model has no such part."""

    outliers: list[Outlier] | None
    """The surest first."""
    terms: list[NoiseTerm] | None
    """The strongest first."""

    def sentences(self, n_rows: int) -> list[str]:
        """For a reader who wants the answer alone."""
        return [each for each in (self._of_outliers(n_rows), self._of_terms()) if each]

    def _of_outliers(self, n_rows: int) -> str:
        if self.outliers is None:
            return ""
        if not self.outliers:
            return "No row looks like a gross error of the target."
        verb = "looks like a gross error" if len(self.outliers) == 1 else "look like gross errors"
        share = percent(len(self.outliers) / n_rows)
        first = ", ".join(str(each.row) for each in self.outliers[:10])
        rows = f"row{'s' * (len(self.outliers) > 1)} {first}{', …' * (len(self.outliers) > 10)}, counted from 0"
        return f"{count(len(self.outliers), 'row')} ({share}) {verb} of the target: {rows}."

    def _of_terms(self) -> str:
        if self.terms is None:
            return ""
        if not self.terms:
            return "The noise does not depend on the features."
        told = [f"{name(each.feature, 40)} (×{NO_BREAK}{number(each.factor, 2)})" for each in self.terms[:6]]
        more = f" and {len(self.terms) - 6} more" if len(self.terms) > 6 else ""
        return (
            f"The standard deviation of the noise depends on {', '.join(told)}{more}; × is for one sd of the feature."
        )


def noise_facts(study: Study, model: Any, names: list[str], spread: Any) -> NoiseFacts:
    """What the fitted model says of its noise."""
    return NoiseFacts(_outliers(study, model), _terms(model, names, spread))


def _outliers(study: Study, model: Any) -> list[Outlier] | None:
    if not hasattr(model, "outliers_"):
        return None
    probability, held = model.outlier_probability_, study.held_out
    predicted = dict(zip(held.rows.tolist(), held.mean.tolist(), strict=True))
    order = model.outliers_[np.argsort(-probability[model.outliers_], kind="stable")]
    return [
        Outlier(row, float(probability[row]), float(study.y[row]), predicted.get(row, np.nan)) for row in order.tolist()
    ]


def _terms(model: Any, names: list[str], spread: Any) -> list[NoiseTerm] | None:
    """The log variance is linear, so that one sd of a feature multiplies the standard deviation by exp(½ weight sd)."""
    if not hasattr(model, "noise_coef_"):
        return None
    change = 0.5 * model.noise_coef_ * spread
    order = [int(j) for j in np.argsort(-np.abs(change), kind="stable") if change[j]]
    return [NoiseTerm(names[j], float(np.exp(change[j]))) for j in order]
