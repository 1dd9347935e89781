"""The sections of a report in reading order. Those about features are in `what_matters`."""

import shlex

import numpy as np

from sparsebayes.app.facts import COVERAGE, Facts
from sparsebayes.app.origin import Origin
from sparsebayes.app.report import figures
from sparsebayes.app.report.comparison import compared
from sparsebayes.app.report.section import Section
from sparsebayes.app.report.summary import class_names, error_text, folds
from sparsebayes.app.report.table import Table
from sparsebayes.app.report.what_matters import MOST, choice, importance, kept, left_out, relevance
from sparsebayes.app.sentences import uneven_sentences
from sparsebayes.app.words import NO_BREAK, NONE, count, interval, name, names, number, percent, plus_minus
from sparsebayes.core.types import IntArray
from sparsebayes.inspection import EvidencePathDisplay

STEPS = 20
"""Most rows of a table of steps or of confusions."""
SQUARE = 10
"""With at most this many classes the confusion matrix is shown; with more, its largest entries."""
GROUPS = 8
"""Groups of rows by their true values."""
WARNINGS = 20
"""Most warnings that are listed."""


def sections(facts: Facts) -> list[Section]:
    """All sections in reading order."""
    outcome = _confusion if facts.study.classes else _predicted
    order = (importance, relevance, choice, _noise, _evidence, outcome, _calibration, _stability, _comparison, kept)
    found = [section(facts) for section in order]
    return [section for section in found if section is not None]


def _evidence(facts: Facts) -> Section | None:
    drawn = figures.evidence(facts)
    if drawn is None:
        return None
    display = EvidencePathDisplay.from_estimator(facts.model)
    text = (
        "The evidence is the probability of the data under the model, averaged over its weights. It rises with the fit "
        "and falls with complexity. "
    )
    if facts.selection.averaged:
        text += "The search finds the single model of largest evidence, from which the averaging over models starts."
    else:
        text += "Its maximum decides what to keep."
    if not facts.ending.get("search_converged", display.converged):
        text += " The search was stopped before it converged: raise max_iter."
    columns = display.to_table()
    steps = list(zip(columns["path"], columns["step"], columns["log_evidence"], strict=True))
    kept = [steps[k] for k in figures.thinned(len(steps), STEPS)]
    several = len(display.paths) > 1
    rows = [[str(step), *([name(path, 40)] if several else []), number(value, 6)] for path, step, value in kept]
    after = f"{len(rows)} of {len(steps):,} steps are listed." if len(rows) < len(steps) else ""
    table = Table("Steps", ["step", *["class"] * several, "log evidence (nats)"], rows, after)
    return Section("evidence", "Evidence during the search", [text], *drawn, table)


def _noise(facts: Facts) -> Section | None:
    """Rows that look wrong, or features on which the noise depends, for models that say so."""
    noise, told = facts.noise, facts.noise.sentences(len(facts.study.y))
    if not told:
        return None
    table = None
    if noise.outliers:
        rows = [
            [f"row {each.row}", number(each.truth), number(each.predicted), percent(each.probability)]
            for each in noise.outliers[:MOST]
        ]
        columns = ["row", "true", "predicted without it", "probability of an error"]
        table = Table("Rows that look wrong", columns, rows, left_out(len(noise.outliers), "row"))
    elif noise.terms:
        rows = [[name(each.feature), number(each.factor)] for each in noise.terms[:MOST]]
        columns = ["feature", "factor of the noise’s sd for one sd more"]
        table = Table("Noise by feature", columns, rows, left_out(len(noise.terms), "feature"))
    title = "Rows that look wrong" if noise.outliers is not None else "What the noise depends on"
    return Section("noise", title, told, shown=table)


def _predicted(facts: Facts) -> Section:
    picture, told = figures.scatter(facts)
    error = plus_minus(facts.score.error, facts.score.error_se)
    text = (
        f"Each row was predicted by a model fitted without it ({folds(facts)}). Points on the line are predicted "
        f"exactly; the root mean square error is {error}."
    )
    return Section("predicted", "Predicted against true", [text], picture, told, _groups(facts), _surprises(facts))


def _groups(facts: Facts) -> Table:
    """Predictions in groups of rows with similar true values."""
    parts = np.array_split(np.argsort(facts.truth, kind="stable"), min(GROUPS, len(facts.truth)))
    rows = []
    for part in parts:
        truth, mean = facts.truth[part], facts.predicted[part]
        error = float(np.sqrt(np.mean((mean - truth) ** 2)))
        cells = [interval(truth.min(), truth.max()), f"{len(part):,}", number(truth.mean()), number(mean.mean())]
        rows.append([*cells, number(error), percent(facts.inside[part].mean())])
    columns = ["true value", "rows", "mean truth", "mean prediction", "error", f"in the {percent(COVERAGE)} interval"]
    return Table("By true value", columns, rows)


def _surprises(facts: Facts) -> Table:
    """The rows with the largest standardised errors."""
    held = facts.study.held_out
    with np.errstate(divide="ignore", invalid="ignore"):  # a standard deviation of zero
        z = np.nan_to_num((facts.truth - held.mean) / held.std, posinf=np.inf, neginf=-np.inf)
    rows = [
        [
            f"row {held.rows[k]}",
            number(facts.truth[k]),
            number(held.mean[k]),
            interval(*facts.intervals[k]),
            number(z[k], 2, sign=True),
        ]
        for k in np.argsort(-np.abs(z), kind="stable")[:6]
    ]
    columns = ["row", "true", "predicted", f"{percent(COVERAGE)} interval", "error (standard deviations)"]
    return Table("Rows with the largest errors", columns, rows, "Rows are counted from 0.")


def _confusion(facts: Facts) -> Section:
    n, error = len(facts.study.classes), error_text(facts, facts.score.error, facts.score.error_se)
    text = (
        f"Each row was classified by a model fitted without it ({folds(facts)}). {error} are misclassified. Rows of "
        "the table are true classes, columns are predicted ones."
    )
    counts = np.zeros((n, n), dtype=int)
    np.add.at(counts, (facts.truth, facts.predicted), 1)
    table = _square(facts, counts) if n <= SQUARE else _mistakes(facts, counts)
    return Section("confusion", "Predicted against true", [text], table=table)


def _square(facts: Facts, counts: np.ndarray) -> Table:
    total = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(total, 1)
    right = [percent(share) if n else NONE for share, n in zip(np.diag(shares), total, strict=True)]
    labels = class_names(facts)
    rows = [
        [label, *(f"{value:,}" for value in line), good]
        for label, line, good in zip(labels, counts, right, strict=True)
    ]
    columns = ["true class", *labels, "correct"]
    return Table("Confusion matrix", columns, rows, "", shares.tolist())


def _mistakes(facts: Facts, counts: np.ndarray) -> Table:
    wrong = counts * (1 - np.eye(len(counts), dtype=int))
    order = np.argsort(-wrong, axis=None, kind="stable")[:STEPS]
    places = [divmod(int(k), len(counts)) for k in order if wrong.flat[k]]
    labels = class_names(facts)
    rows = [[labels[i], labels[j], f"{wrong[i, j]:,}{NO_BREAK}of{NO_BREAK}{counts[i].sum():,}"] for i, j in places]
    after = f"The {len(rows)} most frequent of {int((wrong > 0).sum()):,} confusions are listed."
    return Table("Confusions", ["true class", "predicted class", "rows"], rows, after)


def _calibration(facts: Facts) -> Section:
    if facts.study.classes:
        labels = class_names(facts)
        of, event = f"of “{labels[1]}”", f"“{labels[1]}”"
        if len(labels) > 2:
            of, event = "of the predicted class", "correct"
        title, columns = "Calibration", [f"probability {of}", "observed"]
        text = f"Among rows with a probability of 80{NO_BREAK}% {of}, eight in ten should be {event}."
    else:
        title, columns = "Interval coverage", ["nominal coverage", "rows inside"]
        text = f"A {percent(COVERAGE)} interval should contain nine of ten held-out rows."
    text += f" The grey band contains 95{NO_BREAK}% of the points of a well calibrated model; red diamonds lie outside."
    rows = [
        [percent(nominal), percent(observed), f"{n:,}", f"{100 * low:.0f}{NO_BREAK}…{NO_BREAK}{percent(high)}"]
        for nominal, observed, n, low, high in zip(*facts.coverage.to_table().values(), strict=True)
    ]
    table = Table(title, [*columns, "rows", "expected"], rows)
    told = [text, *uneven_sentences(facts)]
    return Section("calibration", title, told, *figures.calibration(facts), table, _quarters(facts))


def _quarters(facts: Facts) -> Table | None:
    """Coverage or frequencies by quarters of the rows; None with few rows."""
    rows = [
        [each.by, interval(group.low, group.high), f"{group.n:,}", percent(group.expected), percent(group.observed)]
        for each in facts.evenness
        for group in each.groups
    ]
    return Table("By quarters", ["ordered by", "from … to", "rows", "stated", "observed"], rows) if rows else None


def _stability(facts: Facts) -> Section | None:
    folded, n, selection = facts.study.kept_by_fold, len(facts.study.kept_by_fold), facts.selection
    title = "Stability of the selection"
    if selection.what == "vector":
        average = facts.score.kept_vectors
        if not np.isfinite(average):
            return None
        text = f"Over {folds(facts)} the models keep {number(average, 2)} rows on average. Features are not selected."
        return Section("stability", title, [text])
    if not len(selection.frequency):
        return None
    verb = "claim" if selection.averaged else "keep"
    done, others = ("claimed", "does not claim") if selection.averaged else ("kept", "drops")
    order = _by_frequency(facts)
    if not order:
        text = f"None of {count(n, 'model')}, each fitted without one fold, {verb}s a feature."
        return Section("stability", title, [text])
    text = (
        f"{count(n, 'model')}, each fitted without one fold, {verb}{'s' if n == 1 else ''} "
        f"{_range(folded.sum(axis=1))} features. Features that all of them {verb} do not depend on any single fold."
    )
    always = [selection.names[j] for j in order if selection.frequency[j] == 1]
    told = f"{done.title()} in every fold: {names(always)}." if always else f"No feature is {done} in every fold."
    told += (
        f" {count(len(order), 'feature')} {done} at least once; those that the fit to all rows {others} are hatched."
    )
    taken = {effect.index for effect in selection.distinct}
    rows = [[name(selection.names[j]), figures.of_folds(facts, j), "yes" if j in taken else "no"] for j in order[:MOST]]
    table = Table(
        f"{done.title()} by folds", ["feature", "folds", f"{done} with all rows"], rows, left_out(len(order), "feature")
    )
    return Section("stability", title, [text], figures.stability(facts, order), told, table)


def _by_frequency(facts: Facts) -> list[int]:
    """Features that any fold or the fit to all rows keeps: the most frequent first, then by size of effect."""
    frequency = facts.selection.frequency
    rank = {effect.index: k for k, effect in enumerate(facts.selection.distinct)}
    ever = [int(j) for j in np.flatnonzero(frequency)] + [j for j in rank if not frequency[j]]
    return sorted(ever, key=lambda j: (-frequency[j], rank.get(j, len(rank)), j))


def _range(sizes: IntArray) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _comparison(facts: Facts) -> Section:
    return compared(facts.score, facts.others, folds(facts), bool(facts.study.classes), " (this model)")


def provenance(facts: Facts) -> list[tuple[str, str]]:
    """Data, settings and versions behind the report."""
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
    return found + origin_rows(study.origin)


def origin_rows(origin: Origin | None) -> list[tuple[str, str]]:
    """Date, versions and digest, if they are known."""
    if origin is None:
        return []
    others = [f"{each} {version}" for each, version in origin.versions.items() if each != "sparsebayes"]
    found = [("Date", origin.date), ("Other versions", ", ".join(others))]
    return found + ([("SHA-256 of the data", origin.digest)] if origin.digest else [])


def command(facts: Facts) -> str:
    """What was typed; of a study that was made in Python, a command that repeats it."""
    study = facts.study
    if study.origin is not None:
        return name(study.origin.command, 1000)
    parts = ["sparsebayes", "fit", study.source, "--target", study.target, "--model", study.model_name]
    parts += ["--cv", str(study.n_folds), "--seed", str(study.seed), "--report", "report.html"]
    return name(" ".join(shlex.quote(part) for part in parts), 400)


def warned(facts: Facts) -> list[str]:
    """The warnings of the fits, each once."""
    found = list(dict.fromkeys(name(warning, 300) for warning in facts.study.warnings))
    more = [f"… and {len(found) - WARNINGS} more"] if len(found) > WARNINGS else []
    return found[:WARNINGS] + more
