"""The sections of a report about features: what the model uses, how sure the choice is, and the table of features."""

from collections.abc import Callable

import numpy as np

from sparsebayes.app.facts import Facts
from sparsebayes.app.report import figures
from sparsebayes.app.report.section import Section
from sparsebayes.app.report.summary import class_names
from sparsebayes.app.report.table import Table
from sparsebayes.app.selection import CREDIBLE, Effect, FeatureSet
from sparsebayes.app.sentences import importance_text, likely_sentences
from sparsebayes.app.words import NONE, chance, interval, name, names, number, percent, plus_minus, typeset
from sparsebayes.core.credible import CLAIMED
from sparsebayes.estimators import LIKELY, listed
from sparsebayes.inspection import InclusionDisplay

MOST = 60
"""Most rows of a table."""
EQUATIONS = 5
"""Most equations that are written out."""
MEMBERS = 12
"""Features of a credible set that a table names; the others are counted."""


def relevance(facts: Facts) -> Section:
    """The weights of the kept or claimed features, or of the kept rows."""
    selection, near = facts.selection, []
    title = "What the model uses"
    if selection.averaged:
        return _averaged(facts)
    if selection.near:
        asked = number(selection.asked)
        near = [f"Nearly kept: {names(selection.near)}. A feature must add {asked} nats of evidence to be kept."]
    if not selection.effects:
        return Section("relevance", title, ["Nothing: the prediction is the same for all rows.", *near])
    if selection.what == "vector":
        text = (
            "The rows that the model keeps as examples. A prediction is a weighted sum of similarities to these rows."
        )
    elif selection.signed:
        text = "The effect of one standard deviation of each kept feature on the prediction."
    else:
        text = (
            "The weight of each kept feature in the kernel, which compares rows. Features without a weight are ignored."
        )
    return Section("relevance", title, [text, *near], *figures.relevance(facts), _weights(facts))


def importance(facts: Facts) -> Section | None:
    """What matters to a model that keeps rows; None for other models."""
    found = facts.study.importance
    if found is None:
        return None
    text = (
        "Each feature was shuffled in held-out rows, which breaks its relation to the target, and the rows were "
        f"predicted again. The {found.unit} rises by as much as the model relies on the feature. Features that are "
        "correlated stand in for each other, so each of them may look less important than it is."
    )
    rows = [
        [name(each), plus_minus(mean, error, sign=True), "yes" if each in found.clear else "no"]
        for each, mean, error in zip(found.names[:MOST], found.mean, found.error, strict=False)
    ]
    table = Table(
        "Importance", ["feature", f"increase of the {found.unit}", "clear"], rows, left_out(len(found.names), "feature")
    )
    picture = figures.importance(found)
    return Section("importance", "What matters", [text], picture, typeset(importance_text(found)), table)


def _averaged(facts: Facts) -> Section:
    title, selection = "What matters", facts.selection
    if not selection.effects:
        text = f"No feature has an inclusion probability of {percent(CLAIMED)} or more, so none is claimed."
        return Section("relevance", title, [f"{text} Predictions average over models with different features."])
    text = (
        f"The effect of one standard deviation of each claimed feature (inclusion probability at least "
        f"{percent(CLAIMED)}), averaged over models. Predictions use the other features too, according to their "
        "probabilities."
    )
    return Section("relevance", title, [text], *figures.relevance(facts), _weights(facts))


def _weights(facts: Facts) -> Table:
    selection = facts.selection
    cells: dict[str, Callable[[Effect], str]] = {
        selection.what: figures.effect_name,
        "weight": lambda effect: number(effect.weight, sign=selection.signed),
    }
    if selection.certain:
        cells[f"{percent(CREDIBLE)} interval"] = _ends
    return _of_effects("Weights", cells, facts)


def _of_effects(caption: str, cells: dict[str, Callable[[Effect], str]], facts: Facts) -> Table:
    effects = facts.selection.ranked
    rows = [[cell(effect) for cell in cells.values()] for effect in effects[:MOST]]
    return Table(caption, list(cells), rows, left_out(len(effects), facts.selection.what))


def _ends(effect: Effect) -> str:
    return interval(effect.lower, effect.upper, sign=True)


def left_out(n: int, what: str, most: int = MOST) -> str:
    """A note below a table that does not list everything."""
    return f"The {most} largest of {n:,} {what}s are listed." if n > most else ""


def choice(facts: Facts) -> Section | None:
    """Inclusion probabilities and credible sets of an averaged model; None for a single model."""
    selection = facts.selection
    if not selection.averaged:
        return None
    text = [
        "The inclusion probability of a feature is the posterior probability that it is in the model, given these data "
        "and a linear model. Correlated features share it. Then a credible set says that at least one of its features "
        "matters, and the data do not say which.",
        *likely_sentences(selection),
    ]
    display = figures.inclusion_display(facts)
    picture, told = figures.inclusion(display)
    shown = _sets(selection.sets) if selection.sets else None
    return Section("choice", "How sure is the choice", text, picture, told, _probabilities(display), shown=shown)


def _probabilities(display: InclusionDisplay) -> Table:
    order = np.argsort(-display.probability, kind="stable")[:MOST]
    rows = [[display.names[k], chance(display.probability[k]), _called(display.probability[k])] for k in order]
    columns = ["feature", "inclusion probability", "called"]
    return Table("Probabilities", columns, rows, left_out(len(display.names), "value"))


def _called(probability: float) -> str:
    return "claimed" if probability >= CLAIMED else "likely" if probability >= LIKELY else NONE


def _sets(sets: list[FeatureSet]) -> Table:
    several = any(found.output for found in sets)
    rows = [
        [
            listed([name(each, 40) for each in found.names], MEMBERS),
            *([name(found.output, 40)] if several else []),
            chance(found.probability),
            f"{found.purity:.2f}" if len(found.names) > 1 else "",
        ]
        for found in sets[:MOST]
    ]
    columns = ["credible set", *["class"] * several, "probability of at least one", "smallest correlation"]
    return Table("Credible sets", columns, rows, left_out(len(sets), "set"))


def kept(facts: Facts) -> Section:
    """The table of kept or claimed features, or of kept rows."""
    selection = facts.selection
    title = "The kept features" if selection.what == "feature" else "The kept rows"
    if selection.averaged:
        title = "The claimed features"
    if not selection.effects:
        text = f"Nothing was kept: no {selection.what} adds enough evidence."
        if selection.averaged:
            text = f"No feature has an inclusion probability of {percent(CLAIMED)} or more."
        return Section("kept", title, [text])
    told = [f"The size is the {selection.label}. {_direction(facts)}"]
    if selection.averaged:
        told.append("Sizes and intervals are averaged over models, those without the feature included.")
    elif selection.certain:
        what = "features" if selection.what == "feature" else "rows"
        told.append(f"The intervals assume that the kept {what} are the right ones.")
    told += _equation_lines(facts)
    return Section("kept", title, told, table=_of_effects(title, _cells(facts), facts))


def _equation_lines(facts: Facts) -> list[str]:
    """The equations of a linear model in the units of the table; of many classes the first."""
    if not facts.equations:
        return []
    shown = facts.equations[:EQUATIONS]
    more = [f"{len(facts.equations) - EQUATIONS} more equations are in the JSON output."]
    head = "In the units of the table:" if not facts.selection.averaged else "In the units of the table, averaged:"
    return [head, *(each.text() for each in shown), *(more if len(facts.equations) > EQUATIONS else [])]


def _cells(facts: Facts) -> dict[str, Callable[[Effect], str]]:
    """Columns of the table of features or rows; those that do not apply to the model are left out."""
    selection, effects = facts.selection, facts.selection.effects
    has_gain = any(np.isfinite(effect.gain) for effect in effects)
    stand_ins = any(effect.stand_ins for effect in effects)
    found: list[tuple[str, bool, Callable[[Effect], str]]] = [
        (selection.what, True, lambda effect: name(effect.name)),
        ("class", any(effect.output for effect in effects), lambda effect: name(effect.output, 40)),
        ("target", selection.what == "vector", lambda effect: _target(facts, effect.index)),
        ("probability", selection.averaged, lambda effect: chance(effect.probability)),
        ("sign", selection.signed, lambda effect: "▲ raises" if effect.weight > 0 else "▼ lowers"),
        ("size", True, lambda effect: number(effect.weight, sign=selection.signed)),
        (f"{percent(CREDIBLE)} interval", selection.certain, _ends),
        ("evidence (nats)", has_gain, lambda effect: number(effect.gain)),
        ("or instead", stand_ins, lambda effect: listed([name(each, 40) for each in effect.stand_ins])),
        ("folds", len(selection.frequency) > 0, lambda effect: figures.of_folds(facts, effect.index)),
    ]
    return {title: cell for title, there, cell in found if there}


def _target(facts: Facts, row: int) -> str:
    value = facts.study.y[row]
    return name(value, 24) if facts.study.classes else number(float(value))


def _direction(facts: Facts) -> str:
    if not facts.selection.signed:
        return "Weights inside a kernel have no sign."
    if not facts.study.classes:
        result = f"a larger {name(facts.study.target)}"
    elif len(facts.study.classes) == 2:
        result = f"a higher probability of “{class_names(facts)[1]}”"
    else:
        result = "a higher probability of the class"
    cause = "a larger value of the feature" if facts.selection.what == "feature" else "more similarity to the row"
    return f"“Raises” means that {cause} predicts {result}."
