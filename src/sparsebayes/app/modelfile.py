"""Model files of the command line: the fitted pipeline, and how to make its input from a table."""

import os
from dataclasses import asdict, dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from sparsebayes.app import saving
from sparsebayes.app.columns import Column, Recipe
from sparsebayes.app.errors import DataError
from sparsebayes.app.facts import spread
from sparsebayes.app.plain_values import plain
from sparsebayes.app.study import Study

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
    saving.save(study.pipeline, path, metadata={KEY: plain(told)})


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
        stored = saving.read(path)
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder, not a model file") from error
    except (saving.ModelFileError, OSError) as error:
        raise DataError(str(error)) from error
    model = stored.model if isinstance(stored.model, Pipeline) else Pipeline([("model", stored.model)])
    about = stored.metadata.get(KEY)
    if about is not None:
        return Stored(model, Recipe.from_json(about["recipe"]), about, stored.versions)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise DataError(
            f"{path} does not say what its columns are called: fit the model with `sparsebayes fit`, or in Python to a "
            "frame with names"
        )
    return Stored(model, Recipe(tuple(Column(str(name)) for name in names)), {}, stored.versions)
