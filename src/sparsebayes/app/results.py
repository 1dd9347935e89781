"""What was found, as values and sentences: for the verdict, for model files and for programs (JSON)."""

from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import norm, t

from sparsebayes.app.study import Study
from sparsebayes.app.validation import n_vectors
from sparsebayes.core.types import FloatArray
from sparsebayes.estimators._kept import kept

COVERAGE = 0.9
"""Of the intervals of predictions."""
INTERVAL = 0.95
"""Of the intervals of weights."""


def plain(value: Any) -> Any:
    """Values that JSON knows; what is not a number becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def spread(pipeline: Any, X: FloatArray) -> FloatArray:
    """Standard deviations of the features as the model itself sees them, after the steps before it."""
    steps = pipeline[:-1]
    seen = steps.transform(pl.DataFrame(X, schema=list(pipeline.feature_names_in_))) if len(steps) else X
    return np.asarray(seen).std(axis=0)


def kept_lines(model: Any, names: list[str], spread: FloatArray, frequency: FloatArray) -> list[dict[str, Any]]:
    """The kept features, the most important first: effects of one standard deviation with intervals.

    `spread` and `frequency` (share of folds that kept a feature) may be empty. Kernel models without feature weights
    keep rows, not features, and have no lines.
    """
    lines = []
    for part in kept(model):
        if part.what != "feature":
            continue
        scale = spread[part.index] ** part.power if len(spread) else np.ones(len(part.index))
        weight, interval = part.weight * scale, part.interval(INTERVAL) * scale[:, None]
        for k in np.argsort(-np.abs(weight), kind="stable"):
            j = int(part.index[k])
            lines.append(
                {
                    "output": part.output,
                    "feature": names[j],
                    "effect": float(weight[k]),
                    "lower": float(interval[k, 0]),
                    "upper": float(interval[k, 1]),
                    "gain": float(part.gain[j]) if len(part.gain) else np.nan,
                    "folds": float(frequency[j]) if len(frequency) else np.nan,
                }
            )
    return lines


def weight_label(model: Any, per_sd: bool) -> str:
    """What the weights of `kept_lines` are."""
    if getattr(model, "feature_weights_", None) is not None:
        return "kernel weight"
    return "effect of 1 sd" if per_sd else "weight"


def rows_text(model: Any, n_rows: int | None) -> str:
    """On how many rows a kernel model rests; empty for a linear one."""
    n = n_vectors(model)
    return "" if np.isnan(n) else f"rests on {n:.0f}{f' of {n_rows:,}' if n_rows else ''} rows (relevance vectors)"


def ending(model: Any) -> dict[str, Any]:
    """How the search ended."""
    keys = ("log_evidence_", "optimality_gap_", "converged_", "n_iter_", "noise_variance_", "gamma_", "min_gain_")
    return {key.rstrip("_"): getattr(model, key) for key in keys if hasattr(model, key)}


def covered(study: Study) -> float:
    """Share of held-out rows inside their central 90 % intervals."""
    held = study.held_out
    return float(np.mean(np.abs(held.truth - held.mean) <= norm.ppf((1 + COVERAGE) / 2) * held.std))


def amount(value: float, percent: bool) -> str:
    """An error in the units of the target, or in percent."""
    if np.isnan(value):
        return "–"
    return f"{100 * value:.1f} %" if percent else f"{value:.3g}"


def amount_pm(value: float, error: float, percent: bool) -> str:
    """The same with its standard error, of which two digits are shown, and as many places of the value."""
    if np.isnan(value) or np.isnan(error):
        return amount(value, percent)
    if percent:
        return f"{100 * value:.1f} ± {100 * error:.1f} %"
    places = 1 - int(np.floor(np.log10(error))) if error > 0 else 3
    if places > 6:
        return f"{value:.3g} ± {error:.2g}"
    return f"{value:.{max(places, 0)}f} ± {error:.{max(places, 0)}f}"


def sentences(study: Study) -> list[str]:
    """How good, how sure, what matters."""
    first, last = study.scores[0], study.scores[-1]
    percent = study.task != "regression"
    how = f"{study.n_folds}-fold cross-validation"
    error = amount_pm(first.error, first.error_se, percent)
    other = f"{last.title[0].lower()}{last.title[1:]}: {amount(last.error, percent)}"
    what = "Wrong in" if percent else "Error (RMSE)"
    told = [f"{what} {error} {'of the rows' if percent else 'on rows'} that it has not seen ({how}); {other}."]
    gain, sure = last.difference, t.ppf(0.975, study.n_folds - 1) * last.difference_se  # a paired t test at 5 %
    clearly = "clearly" if gain > sure else "not clearly"
    told.append(f"It is {clearly} better than that: by {amount_pm(gain, last.difference_se, percent)}.")
    if study.task == "regression":
        told.append(f"Its {100 * COVERAGE:.0f} % intervals hold {100 * covered(study):.0f} % of the held-out rows.")
    model = study.pipeline[-1]
    names = {line["feature"] for line in kept_lines(model, study.features, np.empty(0), np.empty(0))}
    rows = rows_text(model, len(study.y))
    if study.kept_by_fold.shape[1]:
        told.append(f"It kept {len(names)} of {len(study.features):,} features{' and ' * bool(rows)}{rows}.")
    elif rows:
        told.append(f"It {rows}.")
    return told


def study_json(study: Study) -> dict[str, Any]:
    """Everything that the verdict says, and what it rests on."""
    model, folds = study.pipeline[-1], study.kept_by_fold
    scale = spread(study.pipeline, study.X)
    return plain(
        {
            "version": study.version,
            "source": study.source,
            "target": study.target,
            "task": study.task,
            "classes": study.classes,
            "n_rows": len(study.y),
            "n_features": len(study.features),
            "model": study.model_name,
            "why": study.why,
            "verdict": sentences(study),
            "scores": [asdict(line) for line in study.scores],
            "coverage": {"asked": COVERAGE, "found": covered(study)} if study.task == "regression" else None,
            "kept": kept_lines(model, study.features, scale, folds.mean(axis=0)),
            **ending(model),
            "warnings": study.warnings,
            "seconds": study.seconds,
            "seed": study.seed,
            "n_folds": study.n_folds,
        }
    )
