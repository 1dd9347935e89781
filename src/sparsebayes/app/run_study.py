"""Run a study (`fit`) or rank models (`compare`)."""

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from sparsebayes import __version__
from sparsebayes.app.errors import DataError, UsageError
from sparsebayes.app.importance import Importance, importance_of
from sparsebayes.app.load_data import Problem
from sparsebayes.app.models import (
    BASELINES,
    CHALLENGERS,
    CONSTANT,
    LINEAR,
    Model,
    check_size,
    named,
    pipeline,
    suitable,
)
from sparsebayes.app.origin import Origin, origin
from sparsebayes.app.scoring import better, score
from sparsebayes.app.study import HeldOut, Score, Study
from sparsebayes.app.validation import SLOW, Outcome, Work, cross_validated

AUTO_ROWS = 2000
"""Up to this many rows `--model auto` also tries a kernel model."""
ROWS_PER_FEATURE = 5
"""`--model auto` tries a kernel model only with this many rows per feature: with fewer, distances say little."""

Tick = Callable[[str, int, int], None]
"""Called with the name of a model, the number of finished folds and of all folds."""


@dataclass(frozen=True)
class Settings:
    """How models are made and watched."""

    impute: str = ""
    given: dict[str, Any] | None = None
    """Parameters of the chosen model."""
    tick: Tick = lambda name, done, total: None
    verbose: int = 0
    """Verbosity of the fit to all rows."""
    jobs: int = 1
    """Processes for folds that take long."""
    baselines: bool = True
    """Whether `fit` compares the model with baselines."""


def _validated(
    problem: Problem,
    model: Model,
    settings: Settings,
    given: dict[str, Any] | None = None,
    parts: Sequence[slice] = (),
) -> Outcome:
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        settings.tick(model.name, done, len(problem.folds))

    settings.tick(model.name, 0, len(problem.folds))
    made = pipeline(model, problem.size, problem.seed, settings.impute, given)
    work = Work(made, problem.X, problem.y, problem.target.classes, parts)
    return cross_validated(work, problem.folds, tick, settings.jobs)


# --- fit ---


def studied(problem: Problem, name: str, settings: Settings) -> Study:
    """Choose a model, cross-validate it, and fit it to all rows."""
    start = time.perf_counter()
    model, why, outcomes = _choice(problem, name, settings)
    chosen = outcomes[model.name]
    if chosen.failed:
        raise DataError(f"{model.name} could not be fitted: {chosen.failed}")
    task = problem.target.task
    for other in (*BASELINES[task], CONSTANT[task]) if settings.baselines else ():
        baseline = next(candidate for candidate in suitable(task) if candidate.name == other)
        if not baseline.too_slow(problem.size):
            outcomes[other] = _validated(problem, baseline, settings)
    known = {candidate.name: candidate for candidate in suitable(task)}
    scores = [score(known[other], outcome, chosen) for other, outcome in outcomes.items()]
    scores.sort(key=lambda line: line.model != model.name)  # the chosen model first; the others keep their order
    slow = chosen.seconds > SLOW * len(chosen.folds)  # long enough for other processes to start
    fitted, said = _fitted(problem, model, settings, settings.jobs if slow else None)
    return Study(
        source=problem.source,
        target=problem.target_name,
        task=task,
        why=why,
        model_name=model.name,
        pipeline=fitted,
        features=problem.recipe.features,
        X=problem.X,
        y=problem.y,
        classes=problem.target.classes,
        held_out=_held_out(problem, chosen),
        kept_by_fold=np.array([fold.support for fold in chosen.folds], dtype=bool),
        scores=scores,
        seconds=time.perf_counter() - start,
        version=__version__,
        warnings=[*problem.warnings, *_once(said), *_in_folds(chosen.warnings, said)],
        seed=problem.seed,
        n_folds=len(problem.folds),
        positive=problem.positive,
        importance=_importance(problem, chosen),
        origin=origin(problem.digest),
    )


def _importance(problem: Problem, outcome: Outcome) -> Importance | None:
    """What matters to a model that keeps rows; None for other models."""
    names = [column.name for column in problem.recipe.columns]
    return importance_of(names, [fold.importance for fold in outcome.folds], bool(problem.target.classes))


def _choice(problem: Problem, name: str, settings: Settings) -> tuple[Model, str, dict[str, Outcome]]:
    """The chosen model, the reason, and the folds of all models that were tried."""
    task, size = problem.target.task, problem.size
    if name != "auto":
        model = named(name, task)
        check_size(model, size)
        return (
            model,
            f"{model.name} ({model.title}), as requested.",
            {name: _validated(problem, model, settings, settings.given, problem.recipe.parts)},
        )
    if settings.given:
        raise UsageError("--set needs a model: choose one with --model")
    linear = named(LINEAR[task], task)
    outcomes = {linear.name: _validated(problem, linear, settings)}
    title = f"{linear.name} ({linear.title})"
    if size.n_rows > AUTO_ROWS:
        return linear, f"{title}: with more than {AUTO_ROWS:,} rows only a linear model was tried.", outcomes
    if size.n_rows < ROWS_PER_FEATURE * size.n_features:
        why = f"{title}: with fewer than {ROWS_PER_FEATURE} rows for each feature only a linear model was tried."
        return linear, why, outcomes
    for name in CHALLENGERS[task]:
        kernel = named(name, task)
        if not kernel.too_slow(size) and (name != "drvm" or size.n_features > 1):  # one feature needs no weight
            outcomes[name] = _validated(problem, kernel, settings, parts=problem.recipe.parts)
    model, why = _best(linear, [named(name, task) for name in outcomes if name != linear.name], outcomes)
    return model, why, outcomes


def _best(linear: Model, kernels: list[Model], outcomes: dict[str, Outcome]) -> tuple[Model, str]:
    """The kernel model with the best log score if it is clearly better than the linear one, else that."""
    title = f"{linear.name} ({linear.title})"
    able = [kernel for kernel in kernels if not outcomes[kernel.name].failed]
    if not able:
        return linear, f"{title}: no kernel model could be fitted."
    kernel = min(able, key=lambda each: float(outcomes[each.name].numbers("log_score").mean()))
    wins, difference, error = better(outcomes[kernel.name], outcomes[linear.name])
    by = f"(log score {difference:+.3f} ± {error:.3f} nats a row)"
    if wins or outcomes[linear.name].failed:
        return kernel, (
            f"{kernel.name} ({kernel.title}): it predicts held-out rows better than the linear {linear.name} {by}."
        )
    return linear, f"{title}: the kernel model {kernel.name} is not clearly better on held-out rows {by}."


def _fitted(problem: Problem, model: Model, settings: Settings, jobs: int | None) -> tuple[Any, list[str]]:
    """The model fitted to all rows, with names of its features, and its warnings."""
    made = pipeline(model, problem.size, problem.seed, settings.impute, settings.given)
    frame = pl.DataFrame(problem.X, schema=problem.recipe.features)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        own = made[-1].get_params()
        made[-1].set_params(
            verbose=max(own["verbose"], settings.verbose), **({"n_jobs": jobs} if "n_jobs" in own else {})
        )
        made.fit(frame, problem.y)
        made[-1].set_params(**{key: own[key] for key in ("verbose", "n_jobs") if key in own})
    return made, [str(item.message) for item in caught]


def _held_out(problem: Problem, outcome: Outcome) -> HeldOut:
    rows = np.concatenate([test for _, test in problem.folds])
    order = np.argsort(rows, kind="stable")
    fold = np.repeat(np.arange(len(problem.folds)), [len(test) for _, test in problem.folds])
    mean, std, p = (
        np.concatenate([getattr(f, key) for f in outcome.folds]) for key in ("mean", "std", "probabilities")
    )
    numbers = order if len(mean) else order[:0]
    freedom = outcome.numbers("freedom") if len(mean) else np.empty(0)
    return HeldOut(rows[order], problem.y[rows[order]], fold[order], mean[numbers], std[numbers], freedom, p[order])


def _once(messages: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(messages))


def _in_folds(messages: list[str], said: list[str]) -> list[str]:
    """Warnings that only the fits to folds gave."""
    return [f"in cross-validation: {message}" for message in _once(messages) if message not in said]


# --- compare ---


@dataclass(frozen=True)
class Ranking:
    """Scores of models on the same folds, best first."""

    scores: list[Score]
    left_out: list[str]
    """A message for each model that would take too long."""
    origin: Origin | None = None
    """What was typed, when, on which data, with which versions."""


def compared(problem: Problem, only: Sequence[str], settings: Settings) -> Ranking:
    """Cross-validate all suitable models, or those in `only`, on the same folds."""
    models, left_out = [], []
    for model in suitable(problem.target.task):
        if only and model.name not in only:
            continue
        if not only and model.counts and not problem.size.counts:
            continue
        if not only and model.too_slow(problem.size):
            n_rows, n_features = problem.X.shape
            left_out.append(f"{model.name} was left out: {n_rows:,} rows and {n_features:,} features take too long")
            continue
        check_size(model, problem.size)
        models.append(model)
    unknown = sorted(set(only) - {model.name for model in models})
    if unknown:
        names = ", ".join(model.name for model in suitable(problem.target.task))
        raise UsageError(f"--only {unknown[0]} is not a model for this task; choose from {names}")
    outcomes = {model.name: _validated(problem, model, settings) for model in models}
    good = [model for model in models if not outcomes[model.name].failed]
    if not good:
        raise DataError(f"no model could be fitted: {next(iter(outcomes.values())).failed}")
    good.sort(key=lambda model: float(outcomes[model.name].numbers("error").mean()))
    best = outcomes[good[0].name]
    lines = [score(model, outcomes[model.name], best) for model in [*good, *(m for m in models if m not in good)]]
    return Ranking(lines, left_out, origin(problem.digest))
