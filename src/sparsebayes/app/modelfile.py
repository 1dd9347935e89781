"""Model files of the command line: the fitted pipeline, and how to make its input from a table."""

import os
from dataclasses import asdict, dataclass, fields
from typing import Any

from sklearn.pipeline import Pipeline

from sparsebayes.app.columns import Column, Recipe
from sparsebayes.app.errors import DataError
from sparsebayes.app.facts import spread
from sparsebayes.app.plain_values import plain
from sparsebayes.app.study import Score, Study
from sparsebayes.io import model_file

KEY = "command line"
"""Under which the metadata of a file hold what the command line wants to know again."""


def save_study(study: Study, recipe: Recipe, path: str | os.PathLike[str]) -> None:
    """Write the fitted model with all that `predict` and `inspect` need, whole or not at all."""
    told = {
        "recipe": recipe.to_json(),
        "source": study.source,
        "target": study.target,
        "task": study.task,
        "model": study.model_name,
        "why": study.why,
        "n_rows": len(study.y),
        "n_folds": study.n_folds,
        "seed": study.seed,
        "scores": [asdict(line) for line in study.scores],
        "spread": spread(study.pipeline, study.X).tolist(),
        "frequency": study.kept_by_fold.mean(axis=0).tolist(),
        "warnings": study.warnings,
    }
    model_file.save(study.pipeline, path, metadata={KEY: plain(told)})


@dataclass(frozen=True)
class Stored:
    """A model of a file."""

    pipeline: Any
    recipe: Recipe
    about: dict[str, Any]
    """What `fit` has told of it; empty for a model that was saved from Python."""
    versions: dict[str, str]

    @property
    def model(self) -> Any:
        """The estimator itself."""
        return self.pipeline[-1]


def open_model(path: str) -> Stored:
    """The model of a file, made by `sparsebayes fit` or, with names of its columns, by `sparsebayes.save`."""
    try:
        stored = model_file.read(path)
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder, not a model file") from error
    except (model_file.ModelFileError, OSError) as error:
        raise DataError(str(error)) from error
    model = stored.model if isinstance(stored.model, Pipeline) else Pipeline([("model", stored.model)])
    if KEY in stored.metadata:
        about = stored.metadata[KEY]
        if not _is_whole(about):
            raise DataError(f"{path} is damaged: its notes of `sparsebayes fit` are incomplete")
        return Stored(model, Recipe.from_json(about["recipe"]), about, stored.versions)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise DataError(
            f"{path} does not say what its columns are called: fit the model with `sparsebayes fit`, or in Python to a "
            "frame with names"
        )
    return Stored(model, Recipe(tuple(Column(str(name)) for name in names)), {}, stored.versions)


NUMBERS = (int, float, type(None))
NOTES: dict[str, Any] = {
    "source": str,
    "target": str,
    "task": str,
    "why": str,
    "n_rows": int,
    "n_folds": int,
    "spread": list,
    "frequency": list,
    "scores": list,
}
"""What `inspect` reads of the notes, with its types."""


def _is_whole(about: Any) -> bool:
    """Whether the notes of `sparsebayes fit` are as it writes them; a file may say anything."""
    if not isinstance(about, dict) or not all(isinstance(about.get(key), kind) for key, kind in NOTES.items()):
        return False
    numbers = all(type(number) in NUMBERS for number in [*about["spread"], *about["frequency"]])
    return numbers and _is_recipe(about.get("recipe")) and all(map(_is_score, about["scores"]))


def _is_recipe(recipe: Any) -> bool:
    try:
        columns = [(item["name"], *item["levels"]) for item in recipe["columns"]]
        words = [word for column in columns for word in column if word is not None]
        return all(isinstance(word, str) for word in [recipe["impute"], *words])
    except (KeyError, TypeError):
        return False


def _is_score(line: Any) -> bool:
    """A `Score` with numbers where numbers belong: null stands for nan."""
    known = {field.name: field.type for field in fields(Score)}
    if not isinstance(line, dict) or line.keys() != known.keys():
        return False
    return all(isinstance(line[name], str if kind is str else NUMBERS) for name, kind in known.items())


def check_shown(stored: Stored, path: str) -> None:
    """Refuse what `inspect` cannot show: its table names the inputs of the model by the columns of the file."""
    names = stored.recipe.features
    if not hasattr(stored.model, "converged_"):
        raise DataError(f"{path}: `inspect` shows fitted models, but this {type(stored.model).__name__} is not one")
    if getattr(stored.model, "n_features_in_", None) != len(names):
        raise DataError(
            f"{path}: `inspect` needs steps that keep the columns as they are; the model sees "
            f"{stored.model.n_features_in_} inputs made from {len(names)} columns"
        )
    told = [len(stored.about.get(key, ())) for key in ("spread", "frequency")]
    if any(n not in (0, len(names)) for n in told):
        raise DataError(f"{path} is damaged: its notes of `sparsebayes fit` do not fit its model")
