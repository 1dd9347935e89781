"""Results as JSON for other programs."""

from dataclasses import asdict
from typing import Any

from sparsebayes import __version__
from sparsebayes.app.facts import COVERAGE, Facts, ending_of
from sparsebayes.app.load_data import Problem
from sparsebayes.app.modelfile import Stored
from sparsebayes.app.plain_values import plain
from sparsebayes.app.run_study import Ranking
from sparsebayes.app.selection import Effect, Selection, selection_of
from sparsebayes.app.sentences import sentences


def study_json(facts: Facts) -> dict[str, Any]:
    """The facts of a study."""
    study, calibration = facts.study, facts.calibration
    compared = {other.score.model: [other.lower, other.upper] for other in facts.others}
    scores = [asdict(score) | {"difference_interval": compared.get(score.model)} for score in study.scores]
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
            "verdict": sentences(facts),
            "scores": scores,
            "explained_variance": facts.explained,
            "coverage": None if study.classes else {"asked": COVERAGE, "found": calibration.observed},
            "calibration": asdict(calibration) | {"verdict": facts.trust},
            "by_quarters": [asdict(each) | {"uneven": each.uneven} for each in facts.evenness],
            "skill": _skill_json(facts),
            "importance": _importance_json(facts),
            "unstable": facts.unstable,
            "few_rows": facts.few or None,
            "equations": [
                {
                    "left": each.left,
                    "intercept": each.intercept,
                    "weights": dict(zip(each.names, each.weights, strict=True)),
                }
                for each in facts.equations
            ],
            "origin": asdict(study.origin) if study.origin else None,
            "outliers": _listed(facts.noise.outliers),
            "noise_features": _listed(facts.noise.terms),
            "kept": kept_json(facts.selection),
            "nearly_kept": facts.selection.near,
            **choice_json(facts.selection),
            "n_vectors": facts.selection.n_vectors,
            **facts.ending,
            "warnings": study.warnings,
            "seconds": study.seconds,
            "seed": study.seed,
            "n_folds": study.n_folds,
        }
    )


def _listed(parts: list[Any] | None) -> list[dict[str, Any]] | None:
    return None if parts is None else [asdict(each) for each in parts]


def _skill_json(facts: Facts) -> dict[str, Any] | None:
    skill = facts.skill
    if skill is None:
        return None
    more = {"interest": facts.study.classes[skill.interest], "recall": skill.recall, "precision": skill.precision}
    return asdict(skill) | more


def _importance_json(facts: Facts) -> list[dict[str, Any]] | None:
    found = facts.study.importance
    if found is None:
        return None
    clear = set(found.clear)
    columns = zip(found.names, found.mean, found.error, strict=True)
    return [{"feature": each, "mean": mean, "error": error, "clear": each in clear} for each, mean, error in columns]


def kept_json(selection: Selection) -> list[dict[str, Any]]:
    """The kept or claimed features, output by output, most important first; empty for models that keep rows."""
    return [_effect_json(effect) for effect in selection.effects] if selection.what == "feature" else []


def _effect_json(effect: Effect) -> dict[str, Any]:
    return {
        "output": effect.output,
        "feature": effect.name,
        "effect": effect.weight,
        "lower": effect.lower,
        "upper": effect.upper,
        "gain": effect.gain,
        "folds": effect.frequency,
        "probability": effect.probability,
        "stand_ins": effect.stand_ins,
    }


def choice_json(selection: Selection) -> dict[str, Any]:
    """Whether the model is averaged over models and, if it is, what it says beyond the claimed features."""
    if not selection.averaged:
        return {"averaged": False}
    return {
        "averaged": True,
        "likely": [_effect_json(effect) for effect in selection.likely],
        "credible_sets": [asdict(found) for found in selection.sets],
        "n_features_posterior": [asdict(size) for size in selection.sizes],
    }


def ranking_json(ranking: Ranking, problem: Problem) -> dict[str, Any]:
    """A comparison of models on the same folds."""
    return plain(
        {
            "version": __version__,
            "source": problem.source,
            "target": problem.target_name,
            "task": problem.target.task,
            "n_rows": len(problem.y),
            "seed": problem.seed,
            "origin": asdict(ranking.origin) if ranking.origin else None,
            "scores": [asdict(score) for score in ranking.scores],
            "left_out": ranking.left_out,
        }
    )


def stored_json(stored: Stored) -> dict[str, Any]:
    """What a model file says."""
    about = {key: value for key, value in stored.about.items() if key not in ("recipe", "spread", "frequency")}
    features = stored.recipe.features
    selection = selection_of(stored.model, features, stored.about.get("spread"), stored.about.get("frequency"))
    return plain(
        {
            "versions": stored.versions,
            **about,
            "estimator": type(stored.model).__name__,
            "parameters": {key: str(value) for key, value in stored.model.get_params().items()},
            "features": features,
            "kept": kept_json(selection),
            **choice_json(selection),
            **ending_of(stored.model),
        }
    )
