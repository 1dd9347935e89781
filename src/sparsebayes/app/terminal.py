"""The verdict as tables for people."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparsebayes.app.datasets import Dataset
from sparsebayes.app.modelfile import Stored
from sparsebayes.app.results import (
    INTERVAL,
    amount_pm,
    ending,
    kept_lines,
    plain,
    rows_text,
    sentences,
    spread,
    weight_label,
)
from sparsebayes.app.study import Score, Study
from sparsebayes.estimators._notebook import short

SHOWN = 20
"""Kept features in a table; the others are counted."""
NAME = 40
"""Characters of a name."""


def say(console: Console, sentence: str, style: str = "") -> None:
    """A sentence, on one line unless it meets the edge of a terminal."""
    console.print(sentence, style=style, soft_wrap=not console.is_terminal)


def print_study(console: Console, study: Study) -> None:
    """The verdict."""
    n, p = len(study.y), len(study.features)
    say(console, f"{study.target} of {study.source}: {n:,} rows, {p:,} feature{'s' * (p != 1)}", style="bold")
    say(console, f"Model: {study.why}")
    for sentence in sentences(study):
        say(console, sentence)
    model = study.pipeline[-1]
    lines = kept_lines(model, study.features, spread(study.pipeline, study.X), study.kept_by_fold.mean(axis=0))
    print_kept(console, lines, weight_label(model, per_sd=True), study.n_folds)
    print_scores(console, study.scores, study.task)
    say(console, ending_text(model))


def print_kept(console: Console, lines: list[dict[str, Any]], label: str, n_folds: int) -> None:
    """A table of what was kept."""
    if not lines:
        return
    has = {key: any(np.isfinite(line[key]) for line in lines) for key in ("lower", "gain", "folds")}
    outputs = list(dict.fromkeys(line["output"] for line in lines))
    table = _table()
    if len(outputs) > 1:
        table.add_column("class", justify="left")
    table.add_column("feature", justify="left", overflow="fold")
    table.add_column(label, justify="right")
    if has["lower"]:
        table.add_column(f"{100 * INTERVAL:.0f} % interval", justify="right")
    if has["gain"]:
        table.add_column("evidence", justify="right")
    if has["folds"]:
        table.add_column("kept in folds", justify="right")
    for output in outputs:
        mine = [line for line in lines if line["output"] == output]
        most = max(SHOWN // len(outputs), 3)
        for line in mine[:most]:
            cells = [short(output, NAME)] * (len(outputs) > 1) + [
                short(line["feature"], NAME),
                f"{line['effect']:+.3g}",
            ]
            cells += [f"{line['lower']:+.3g} … {line['upper']:+.3g}"] * has["lower"]
            cells += [f"{line['gain']:.1f} nats"] * has["gain"]
            cells += [f"{round(line['folds'] * n_folds)} of {n_folds}"] * has["folds"]
            table.add_row(*map(Text, cells))
        if len(mine) > most:
            table.add_row(*[Text(short(output, NAME))] * (len(outputs) > 1), Text(f"… and {len(mine) - most} more"))
    console.print(table)


def ending_text(model: Any) -> str:
    """How the search ended, in a line."""
    evidence = np.atleast_1d(getattr(model, "log_evidence_", np.nan))
    told = "Log evidence " + ", ".join(f"{value:.1f}" for value in evidence[:6]) + ", …" * (len(evidence) > 6)
    if not model.converged_:
        return f"{told}; NOT CONVERGED after {model.n_iter_} steps: raise it with --set max_iter=…"
    gap = float(np.max(np.atleast_1d(getattr(model, "optimality_gap_", np.nan))))
    return f"{told}; converged in {model.n_iter_} steps ({gap:.0e} nats to gain)."


def print_scores(console: Console, scores: list[Score], task: str) -> None:
    """A comparison as a table."""
    percent = task != "regression"
    table = _table()
    table.add_column("model", justify="left")
    head = "wrong" if percent else "RMSE"
    for title in (
        head,
        "log score",
        f"{head} − best" if len(scores) > 4 else "difference",
        "features",
        "vectors",
        "time",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    for line in scores:
        name = Text(line.model, style="bold" if line.ours else "")
        name.append(f"  {line.title.removesuffix(' (sparsebayes)')}", style="not bold dim")
        if line.failed:
            table.add_row(name, Text("failed"), Text(short(line.failed, NAME)))
            continue
        first = line is scores[0]
        table.add_row(
            name,
            amount_pm(line.error, line.error_se, percent),
            _number(line.log_score, ".3f"),
            "" if first else amount_pm(line.difference, line.difference_se, percent),
            _number(line.kept_features, ".1f"),
            _number(line.kept_vectors, ".1f"),
            f"{line.seconds:.1f} s",
        )
    console.print(table)


def _number(value: float, form: str) -> str:
    return "–" if np.isnan(value) else f"{value:{form}}"


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)


# --- a model file ---


def stored_json(stored: Stored) -> dict[str, Any]:
    """What is known of a model file."""
    about = {key: value for key, value in stored.about.items() if key not in ("recipe", "spread", "frequency")}
    return plain(
        {
            "versions": stored.versions,
            **about,
            "estimator": type(stored.model).__name__,
            "parameters": {key: str(value) for key, value in stored.model.get_params().items()},
            "features": stored.recipe.features,
            "kept": _stored_lines(stored),
            **ending(stored.model),
        }
    )


def _stored_lines(stored: Stored) -> list[dict[str, Any]]:
    told = [np.array(stored.about.get(key, ()), dtype=np.float64) for key in ("spread", "frequency")]
    return kept_lines(stored.model, stored.recipe.features, *told)


def print_stored(console: Console, stored: Stored) -> None:
    """What was kept, evidence, convergence."""
    about, model = stored.about, stored.model
    version = stored.versions.get("sparsebayes", "?")
    say(console, f"{type(model).__name__} of sparsebayes {version}", style="bold")
    if about:
        say(console, f"{about['target']} of {about['source']} ({about['task']}, {about['n_rows']:,} rows)")
        say(console, f"Model: {about['why']}")
        scores = [Score(**{key: _nan(value) for key, value in line.items()}) for line in about["scores"]]
        print_scores(console, scores, about["task"])
    lines = _stored_lines(stored)
    rows = rows_text(model, about.get("n_rows"))
    n = len({line["feature"] for line in lines})
    if lines or not rows:
        say(console, f"Kept {n} of {len(stored.recipe.features):,} features{' and ' * bool(rows)}{rows}.")
    else:
        say(console, f"It {rows}.")
    print_kept(console, lines, weight_label(model, "spread" in about), about.get("n_folds", 0))
    say(console, ending_text(model))


def _nan(value: Any) -> Any:
    return np.nan if value is None else value


# --- data sets ---


def print_datasets(console: Console, known: Mapping[str, Dataset]) -> None:
    """The built-in data sets."""
    table = _table()
    for title, side in (("name", "left"), ("rows", "right"), ("features", "right"), ("target", "left"), ("", "left")):
        table.add_column(title, justify=side)
    for name, data in known.items():
        table.add_row(name, f"{data.n_rows:,}", f"{data.n_features:,}", data.target, data.about)
    console.print(table)
