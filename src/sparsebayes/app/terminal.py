"""Results as text and tables on the terminal."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparsebayes.app.datasets import Dataset
from sparsebayes.app.facts import Facts, ending_of
from sparsebayes.app.modelfile import Stored
from sparsebayes.app.selection import CREDIBLE, Effect, Selection, selection_of
from sparsebayes.app.sentences import selection_sentences, sentences
from sparsebayes.app.study import Score
from sparsebayes.app.words import error_text, for_terminal
from sparsebayes.estimators import listed, probable, short

SHOWN = 20
"""Features in a table; the rest is only counted."""
NAME = 40
"""Longest name in characters."""
LONG = 300
"""Longest reason of a failure in characters."""


def say(console: Console, sentence: str, style: str = "") -> None:
    """Print a sentence on one line; a terminal wraps it at its edge."""
    console.print(sentence, style=style, soft_wrap=not console.is_terminal)


def print_study(console: Console, facts: Facts) -> None:
    """Print the facts of a study."""
    study = facts.study
    n, p = len(study.y), len(study.features)
    say(console, f"{study.target} of {study.source}: {n:,} rows, {p:,} feature{'s' * (p != 1)}", style="bold")
    say(console, f"Model: {study.why}")
    for sentence in sentences(facts):
        say(console, sentence)
    print_kept(console, facts.selection, study.n_folds)
    print_scores(console, study.scores, study.task)
    say(console, ending_text(facts.ending))


def print_kept(console: Console, selection: Selection, n_folds: int) -> None:
    """Print a table of the kept or claimed features; nothing for models that keep rows."""
    effects = selection.effects
    if selection.what != "feature" or not effects:
        return
    outputs = [output for output in selection.outputs if any(effect.output == output for effect in effects)]
    several = len(outputs) > 1
    cells = _cells(selection, n_folds)
    table = _table()
    if several:
        table.add_column("class", justify="left")
    for title, cell in cells.items():
        left = title in ("feature", "or instead")
        longest = 0 if left else max(len(cell(effect)) for effect in effects)  # names may be broken, numbers not
        table.add_column(title, justify="left" if left else "right", overflow="fold", min_width=longest)
    most = max(SHOWN // len(outputs), 3)
    for output in outputs:
        mine = [effect for effect in effects if effect.output == output]
        first = [short(output, NAME)] * several
        for effect in mine[:most]:
            table.add_row(*map(Text, [*first, *(cell(effect) for cell in cells.values())]))
        if len(mine) > most:
            table.add_row(*map(Text, [*first, f"… and {len(mine) - most} more"]))
    console.print(table)


def _cells(selection: Selection, n_folds: int) -> dict[str, Callable[[Effect], str]]:
    """Columns of the table of features; those that do not apply to the model are left out."""
    effects, averaged = selection.effects, selection.averaged
    has_gain = any(np.isfinite(effect.gain) for effect in effects)
    has_folds = any(np.isfinite(effect.frequency) for effect in effects)
    stand_ins = any(effect.stand_ins for effect in effects)
    found: list[tuple[str, bool, Callable[[Effect], str]]] = [
        ("feature", True, lambda effect: short(effect.name, NAME)),
        ("probability", averaged, lambda effect: probable(effect.probability)),
        (_weight_title(selection), True, lambda effect: f"{effect.weight:+.3g}"),
        (f"{100 * CREDIBLE:.0f} % interval", selection.certain, lambda e: f"{e.lower:+.3g} … {e.upper:+.3g}"),
        ("evidence", has_gain, lambda effect: f"{effect.gain:.1f} nats"),
        ("or instead", stand_ins, lambda effect: listed([short(each, NAME) for each in effect.stand_ins])),
        (
            "folds",
            has_folds,
            lambda effect: f"{round(effect.frequency * n_folds)} of {n_folds}",
        ),
    ]
    return {title: cell for title, there, cell in found if there}


def _weight_title(selection: Selection) -> str:
    if not selection.signed:
        return "kernel weight"
    return "effect of 1 sd" if selection.per_sd else "weight"


def ending_text(ending: dict[str, Any]) -> str:
    """How the search and the chains ended, in one line."""
    evidence = np.atleast_1d(ending.get("log_evidence", np.nan))
    told = "Log evidence " + ", ".join(f"{value:.1f}" for value in evidence[:6]) + ", …" * (len(evidence) > 6)
    steps = f"{ending['n_iter']} step{'s' * (ending['n_iter'] != 1)}"
    if "chain_error" in ending:
        told = f"{_chains_text(ending)} {told} of the best single model"
    if not ending.get("search_converged", ending["converged"]):
        return f"{told}; NOT CONVERGED after {steps}: raise the limit with --model and --set max_iter=…"
    gap = float(np.max(np.atleast_1d(ending.get("optimality_gap", np.nan))))
    return f"{told}; converged in {steps} (the best single change would add {gap:.0e} nats)."


def _chains_text(ending: dict[str, Any]) -> str:
    """How well the chains of an averaged model agree."""
    error = f"standard error of an inclusion probability {ending['chain_error']:.3f}"
    if ending["converged"] or not ending.get("search_converged", True):
        return f"Averaged over models: {ending['n_flips']:,} flips of each chain, {error}."
    return (
        f"The chains DO NOT AGREE after {ending['n_flips']:,} flips of each ({error}): raise the limit with "
        "--model and --set max_flips=…."
    )


def print_scores(console: Console, scores: list[Score], task: str) -> None:
    """Print a comparison of models as a table, and what the names stand for."""
    percent = task != "regression"
    table = _table()
    table.add_column("model", justify="left", no_wrap=True)
    head = "wrong" if percent else "RMSE"
    for title in (head, "log score", "difference", "features", "vectors", "time"):
        table.add_column(title, justify="right", no_wrap=True)
    for line in scores:
        name = Text(line.model, style="bold" if line.ours else "")
        if line.failed:
            table.add_row(name, Text("failed"))
            continue
        first = line is scores[0]
        table.add_row(
            name,
            _error(line.error, line.error_se, percent),
            _number(line.log_score, ".3f"),
            "" if first else _error(line.difference, line.difference_se, percent),
            _number(line.kept_features, ".1f"),
            _number(line.kept_vectors, ".1f"),
            f"{line.seconds:.1f} s",
        )
    console.print(table)
    titles = [f"{line.model}: {line.title.removesuffix(' (sparsebayes)')}" for line in scores]
    console.print("; ".join(titles) + ".", style="dim")
    for line in scores:
        if line.failed:
            say(console, f"{line.model} failed: {short(line.failed, LONG)}")


def _error(value: float, error: float, percent: bool) -> str:
    return for_terminal(error_text(value, error, percent=percent))


def _number(value: float, form: str) -> str:
    return "–" if np.isnan(value) else f"{value:{form}}"


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)


# --- a model file ---


def print_stored(console: Console, stored: Stored) -> None:
    """Print what a model file says."""
    about, model = stored.about, stored.model
    version = stored.versions.get("sparsebayes", "?")
    say(console, f"{type(model).__name__} of sparsebayes {version}", style="bold")
    if about:
        say(console, f"{about['target']} of {about['source']} ({about['task']}, {about['n_rows']:,} rows)")
        say(console, f"Model: {about['why']}")
        scores = [Score(**{key: _nan(value) for key, value in line.items()}) for line in about["scores"]]
        print_scores(console, scores, about["task"])
    selection = selection_of(model, stored.recipe.features, about.get("spread"), about.get("frequency"))
    for sentence in selection_sentences(selection, about.get("n_rows")):
        say(console, sentence)
    print_kept(console, selection, about.get("n_folds", 0))
    say(console, ending_text(ending_of(model)))


def _nan(value: Any) -> Any:
    return np.nan if value is None else value


# --- data sets ---


def print_datasets(console: Console, known: Mapping[str, Dataset]) -> None:
    """Print the built-in data sets."""
    table = _table()
    for title, side in (("name", "left"), ("rows", "right"), ("features", "right"), ("target", "left"), ("", "left")):
        table.add_column(title, justify=side)
    for name, data in known.items():
        table.add_row(name, f"{data.n_rows:,}", f"{data.n_features:,}", data.target, data.about)
    console.print(table)
