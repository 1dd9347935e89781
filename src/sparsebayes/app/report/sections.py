"""The sections of a report: what is said, the picture of it, and the table behind the picture."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sparsebayes.app.facts import COVERAGE, CREDIBLE, Effect, Facts, thinned
from sparsebayes.app.report import figures
from sparsebayes.app.report.summary import error_text, folds
from sparsebayes.app.report.words import (
    NO_BREAK,
    NONE,
    Table,
    count,
    interval,
    name,
    names,
    number,
    percent,
    plus_minus,
)
from sparsebayes.core.types import IntArray
from sparsebayes.inspection import EvidencePathDisplay

MOST = 60
"""Rows of a table."""
STEPS = 20
"""Rows of a table of steps."""
SQUARE = 10
"""Classes up to which the table of confusions is a square."""
GROUPS = 8
"""Groups of rows, by their true values."""
WARNINGS = 20


@dataclass(frozen=True)
class Section:
    """One heading and what stands below it."""

    id: str
    title: str
    text: Sequence[str]
    picture: str = ""
    told: str = ""
    """What the picture shows, in words."""
    table: Table | None = None
    """Behind the picture, to be unfolded; in the open where there is no picture."""
    extra: Table | None = None
    """To be unfolded as well."""


def sections(facts: Facts) -> list[Section]:
    """All of them, in the order in which they are read."""
    outcome = [_confusion, _promises] if facts.study.classes else [_predicted, _promises]
    found = [section(facts) for section in (_relevance, _evidence, *outcome, _stability, _comparison, _kept)]
    return [section for section in found if section is not None]


def _relevance(facts: Facts) -> Section:
    title, near = "What the model uses", []
    if facts.near:
        near = [
            f"Nearly kept: {names(facts.near)}. One feature more must bring {number(facts.asked)} nats of evidence."
        ]
    if not facts.effects:
        return Section("relevance", title, ["Nothing: the prediction is the same for all rows.", *near])
    if facts.what == "vector":
        text = "The rows that the model keeps as examples: a prediction is a sum of how like them a new row is."
    elif facts.signed:
        text = "The effect of each kept feature when it grows by one standard deviation, so that they can be compared."
    else:
        text = "How strongly each kept feature counts when rows are compared; features without a weight are ignored."
    cells = {
        facts.what: figures.effect_name,
        "weight": lambda effect: number(effect.weight, sign=facts.signed),
    }
    if facts.certain:
        cells[f"{percent(CREDIBLE)} interval"] = lambda effect: _ends(effect.lower, effect.upper)
    table = _of_effects("Weights", cells, facts)
    return Section("relevance", title, [text, *near], *figures.relevance(facts), table)


def _of_effects(caption: str, cells: dict[str, Callable[[Effect], str]], facts: Facts) -> Table:
    rows = [[cell(effect) for cell in cells.values()] for effect in facts.effects[:MOST]]
    return Table(caption, list(cells), rows, _left_out(len(facts.effects), facts.what))


def _ends(low: float, high: float) -> str:
    return interval(low, high, sign=True)


def _left_out(n: int, what: str, most: int = MOST) -> str:
    return f"The {most} largest of {n:,} {what}s are listed." if n > most else ""


def _evidence(facts: Facts) -> Section | None:
    drawn = figures.evidence(facts)
    if drawn is None:
        return None
    display = EvidencePathDisplay.from_estimator(facts.model)
    text = (
        "The evidence is the probability of the data under the model with its weights averaged out: it rewards fit and "
        "charges for complexity, so it says by itself when to stop."
    )
    if not display.converged:
        text += " The search was stopped before its end: raise max_iter."
    columns = display.to_table()
    steps = list(zip(columns["path"], columns["step"], columns["log_evidence"], strict=True))
    kept = [steps[k] for k in thinned(len(steps), STEPS)]
    several = len(display.paths) > 1
    rows = [[str(step), *([name(path, 40)] if several else []), number(value, 6)] for path, step, value in kept]
    after = f"{len(rows)} of {len(steps):,} steps are listed." if len(rows) < len(steps) else ""
    table = Table("Steps", ["step", *["class"] * several, "log evidence (nats)"], rows, after)
    return Section("evidence", "How it was found", [text], *drawn, table)


def _predicted(facts: Facts) -> Section:
    picture, told = figures.scatter(facts)
    error = plus_minus(facts.score.error, facts.score.error_se)
    text = (
        f"Each row was predicted by a model that had not seen it ({folds(facts)}). The nearer to the line the better; "
        f"the root mean square error is {error}."
    )
    return Section("predicted", "Predicted against true", [text], picture, told, _groups(facts), _surprises(facts))


def _groups(facts: Facts) -> Table:
    """Predictions of rows with small to large true values."""
    parts = np.array_split(np.argsort(facts.truth, kind="stable"), min(GROUPS, len(facts.truth)))
    rows = []
    for part in parts:
        truth, mean = facts.truth[part], facts.predicted[part]
        error = float(np.sqrt(np.mean((mean - truth) ** 2)))
        cells = [interval(truth.min(), truth.max()), f"{len(part):,}", number(truth.mean()), number(mean.mean())]
        rows.append([*cells, number(error), percent(facts.held[part].mean())])
    columns = ["true value", "rows", "mean truth", "mean prediction", "error", f"in the {percent(COVERAGE)} interval"]
    return Table("By true value", columns, rows)


def _surprises(facts: Facts) -> Table:
    """The rows that the model misses by the most standard deviations."""
    held = facts.study.held_out
    with np.errstate(divide="ignore", invalid="ignore"):  # a model that is wholly sure
        z = np.nan_to_num((facts.truth - held.mean) / held.std, posinf=np.inf, neginf=-np.inf)
    rows = [
        [
            f"row {held.rows[k]}",
            number(facts.truth[k]),
            number(held.mean[k]),
            interval(*facts.ends[k]),
            number(z[k], 2, sign=True),
        ]
        for k in np.argsort(-np.abs(z), kind="stable")[:6]
    ]
    columns = ["row", "true", "predicted", f"{percent(COVERAGE)} interval", "off by (standard deviations)"]
    return Table("Rows worth a look: the largest surprises", columns, rows, "Rows are counted from 0.")


def _confusion(facts: Facts) -> Section:
    n, error = len(facts.classes), error_text(facts, facts.score.error, facts.score.error_se)
    text = (
        f"Each row was classified by a model that had not seen it ({folds(facts)}). {error} are wrong; rows of the "
        "table are the true classes."
    )
    counts = np.zeros((n, n), dtype=int)
    np.add.at(counts, (facts.truth, facts.predicted), 1)
    table = _square(facts, counts) if n <= SQUARE else _mistakes(facts, counts)
    return Section("confusion", "Predicted against true", [text], table=table)


def _square(facts: Facts, counts: np.ndarray) -> Table:
    total = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(total, 1)
    right = [percent(share) if n else NONE for share, n in zip(np.diag(shares), total, strict=True)]
    rows = [
        [label, *(f"{value:,}" for value in line), good]
        for label, line, good in zip(facts.classes, counts, right, strict=True)
    ]
    columns = ["true, as", *facts.classes, "right"]
    return Table("How the classes were told apart", columns, rows, "", shares.tolist())


def _mistakes(facts: Facts, counts: np.ndarray) -> Table:
    wrong = counts * (1 - np.eye(len(counts), dtype=int))
    order = np.argsort(-wrong, axis=None, kind="stable")[:STEPS]
    places = [divmod(int(k), len(counts)) for k in order if wrong.flat[k]]
    rows = [
        [facts.classes[i], facts.classes[j], f"{wrong[i, j]:,}{NO_BREAK}of{NO_BREAK}{counts[i].sum():,}"]
        for i, j in places
    ]
    after = f"The {len(rows)} most frequent of {int((wrong > 0).sum()):,} mistakes are listed."
    return Table("What is taken for what", ["true class", "taken for", "rows"], rows, after)


def _promises(facts: Facts) -> Section:
    if facts.classes:
        of = "of the predicted class" if len(facts.classes) > 2 else f"of “{facts.classes[1]}”"
        title, columns = "Calibration", [f"probability {of}", "came true"]
        text = f"Probabilities {of}: of rows that are given 80{NO_BREAK}%, it should come true for eight of ten."
    else:
        title, columns = "Interval coverage", ["coverage of the interval", "rows held"]
        text = f"A {percent(COVERAGE)} interval should hold nine of ten rows."
    text += " Points in the grey band are as good as chance allows; red diamonds break the promise."
    rows = [
        [percent(nominal), percent(observed), f"{n:,}", f"{100 * low:.0f}{NO_BREAK}…{NO_BREAK}{percent(high)}"]
        for nominal, observed, n, low, high in zip(*facts.promises.to_table().values(), strict=True)
    ]
    table = Table(title, [*columns, "rows", "by chance"], rows)
    return Section("promises", title, [text], *figures.promises(facts), table)


def _stability(facts: Facts) -> Section | None:
    kept, n = facts.study.kept_by_fold, len(facts.study.kept_by_fold)
    title = "Stability of the selection"
    if facts.what == "vector":
        score = facts.score.kept_vectors
        if not np.isfinite(score):
            return None
        text = f"Over {folds(facts)} the models keep {number(score, 2)} rows on average. Features are not selected."
        return Section("stability", title, [text])
    if not len(facts.frequency):
        return None
    taken = {effect.index for effect in facts.effects}
    rank = {effect.index: k for k, effect in enumerate(facts.distinct)}
    ever = [int(j) for j in np.flatnonzero(facts.frequency)] + [j for j in taken if not facts.frequency[j]]
    order = sorted(ever, key=lambda j: (-facts.frequency[j], rank.get(j, len(rank)), j))
    sizes = kept.sum(axis=1)
    if not order:
        return Section(
            "stability", title, [f"None of {count(n, 'model')}, each fitted without one fold, keeps a feature."]
        )
    text = (
        f"{count(n, 'model')}, each fitted without one fold, {'keeps' if n == 1 else 'keep'} {_range(sizes)} "
        f"features. What all of them keep does not hang on any one fold."
    )
    always = [facts.names[j] for j in order if facts.frequency[j] == 1]
    told = f"Kept in every fold: {names(always)}." if always else "No feature was kept in every fold."
    told += f" {count(len(order), 'feature')} kept at least once; those that the fit to all rows dropped are hatched."
    rows = [[facts.names[j], figures.of_folds(facts, j), "yes" if j in taken else "no"] for j in order[:MOST]]
    table = Table("Kept by folds", ["feature", "folds", "kept with all rows"], rows, _left_out(len(order), "feature"))
    return Section("stability", title, [text], figures.stability(facts, order), told, table)


def _range(sizes: IntArray) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _comparison(facts: Facts) -> Section:
    scores = facts.study.scores
    unit = "share of wrong rows" if facts.study.classes else "root mean square error"
    text = (
        f"All models on the same {folds(facts)}. Error is the {unit}, ± its standard error; differences are paired "
        "over the folds, and an interval that holds zero is no clear difference."
    )
    rows = []
    for k, score in enumerate(scores[:MOST]):
        title = name(score.title) + (" (this model)" if k == 0 else "")
        if score.failed:
            rows.append([title, f"failed: {name(score.failed, 160)}", *[NONE] * 5])
            continue
        cells = [error_text(facts, score.error, score.error_se), NONE if k == 0 else _difference(facts, k)]
        cells += [
            plus_minus(score.log_score, score.log_score_se),
            number(score.kept_features),
            number(score.kept_vectors),
        ]
        rows.append([title, *cells, f"{number(score.seconds, 2)}{NO_BREAK}s"])
    columns = [
        "model",
        "error",
        f"difference ({percent(CREDIBLE)} interval)",
        "log score (nats)",
        "features",
        "vectors",
        "time",
    ]
    table = Table("Comparison", columns, rows)
    others = [score for score in scores[1:] if np.isfinite(score.difference)]
    if not others:
        return Section("comparison", "Comparison with other models", [text], table=table)
    told = f"{name(scores[0].title)} against {count(len(others), 'other')}: {_tally(facts)}."
    return Section("comparison", "Comparison with other models", [text], figures.comparison(facts), told, table)


def _difference(facts: Facts, k: int) -> str:
    score, unit = facts.study.scores[k], 100 if facts.study.classes else 1
    low, high = (unit * end for end in facts.difference_interval(score))
    mean = number(unit * score.difference, sign=True)
    return f"{mean} ({_ends(low, high)})" if np.isfinite(low) else mean


def _tally(facts: Facts) -> str:
    ends = [facts.difference_interval(score) for score in facts.study.scores[1:] if np.isfinite(score.difference)]
    worse, better = sum(low > 0 for low, _ in ends), sum(high < 0 for _, high in ends)
    return f"{worse} clearly worse, {better} clearly better, {len(ends) - worse - better} without clear difference"


def _kept(facts: Facts) -> Section:
    title = "The kept features" if facts.what == "feature" else "The kept rows"
    if not facts.effects:
        return Section("kept", title, ["Nothing was kept: nothing brings the evidence that is asked of it."])
    text = [f"Size: {facts.weight_label.partition(', 95')[0]}. {_direction(facts)}"]
    if facts.certain:
        text.append("Intervals are given what was kept: they do not know that others might stand in its place.")
    return Section("kept", title, text, table=_of_effects(title, _cells(facts), facts))


def _cells(facts: Facts) -> dict[str, Callable[[Effect], str]]:
    """Columns of the table of what was kept, those that the model has something to say in."""
    effects = facts.effects
    found: list[tuple[str, bool, Callable[[Effect], str]]] = [
        (facts.what, True, lambda effect: effect.name),
        ("class", any(effect.output for effect in effects), lambda effect: effect.output),
        ("target", facts.what == "vector", lambda effect: _target(facts, effect.index)),
        ("sign", facts.signed, lambda effect: "▲ raises" if effect.weight > 0 else "▼ lowers"),
        ("size", True, lambda effect: number(effect.weight, sign=facts.signed)),
        (
            f"{percent(CREDIBLE)} interval",
            facts.certain,
            lambda effect: _ends(effect.lower, effect.upper),
        ),
        ("evidence (nats)", any(np.isfinite(effect.gain) for effect in effects), lambda effect: number(effect.gain)),
        ("folds", len(facts.frequency) > 0, lambda effect: figures.of_folds(facts, effect.index)),
    ]
    return {title: cell for title, there, cell in found if there}


def _target(facts: Facts, row: int) -> str:
    value = facts.study.y[row]
    return name(value, 24) if facts.study.classes else number(float(value))


def _direction(facts: Facts) -> str:
    more = "the more of it" if facts.what == "feature" else "the more a row is like it"
    if not facts.signed:
        return "Weights inside a kernel have no sign."
    if not facts.study.classes:
        return f"“Raises” means: {more}, the larger {name(facts.study.target)}."
    what = f"“{facts.classes[1]}”" if len(facts.classes) == 2 else "the class"
    return f"“Raises” means: {more}, the more probable {what}."


def provenance(facts: Facts) -> list[tuple[str, str]]:
    """Where it all comes from."""
    study = facts.study
    missing = int(np.isnan(study.X).sum())
    rows = f"{len(study.y):,}" + (
        f", {len(facts.truth):,} of them predicted" if len(facts.truth) < len(study.y) else ""
    )
    found = [
        ("Data", name(study.source, 200)),
        ("Target", name(study.target)),
        ("Task", study.task if not study.classes else f"{study.task}: {names(study.classes, 10)}"),
        ("Rows", rows),
        (
            "Features",
            f"{len(study.features):,}" + (f", {count(missing, 'value')} missing and imputed" if missing else ""),
        ),
        ("Model", f"{name(facts.score.title)}: {type(facts.model).__name__}"),
        ("Why this model", name(study.why, 400)),
        ("Cross-validation", f"{folds(facts)}, seed {study.seed}"),
        ("Time", f"{number(study.seconds, 2)}{NO_BREAK}s"),
        ("Version", f"sparsebayes {name(study.version)}"),
    ]
    return found


def command(facts: Facts) -> str:
    """The command that makes the study again, but for options that say which columns and groups are meant."""
    study = facts.study
    parts = ["sparsebayes", "fit", study.source, "--target", study.target, "--model", study.model_name]
    parts += ["--cv", str(study.n_folds), "--seed", str(study.seed), "--report", "report.html"]
    return name(" ".join(shlex.quote(part) for part in parts), 400)


def warned(facts: Facts) -> list[str]:
    """What the fits had to say, each once."""
    found = list(dict.fromkeys(name(warning, 300) for warning in facts.study.warnings))
    more = [f"… and {len(found) - WARNINGS} more"] if len(found) > WARNINGS else []
    return found[:WARNINGS] + more
