"""The facts of a study in a few sentences, for the terminal and the JSON output.

`choice_sentences` is also used by the report.
"""

import math

from sparsebayes.app.class_skill import ClassSkill
from sparsebayes.app.facts import COVERAGE, Calibration, Facts
from sparsebayes.app.importance import Importance
from sparsebayes.app.selection import Effect, Selection
from sparsebayes.app.words import chance, count, error_text, for_terminal, name, number, percent, typeset
from sparsebayes.core.credible import CLAIMED
from sparsebayes.estimators import listed, set_text, size_text

INTERVALS = {
    "calibrated": "well calibrated",
    "overconfident": "too narrow",
    "underconfident": "wider than necessary",
    "uneven": "right on average, but not everywhere",
    "unknown": "hard to judge with so few rows",
}
"""What calibration says about intervals."""
PROBABILITIES = {
    "calibrated": "well calibrated",
    "overconfident": "too confident",
    "underconfident": "not confident enough",
    "uneven": "right on average, but not everywhere",
    "unknown": "hard to judge with so few rows",
}
"""What calibration says about probabilities."""
SETS = 3
"""Credible sets that are told in sentences; the others are counted."""


def sentences(facts: Facts) -> list[str]:
    """How good the model is, how sure, and what it uses."""
    good = [_error(facts), _against_constant(facts)]
    if facts.skill is not None:
        told = [found_text(facts, facts.skill), skill_text(facts.skill)]
        good = told + good if facts.skill.rare else good + told[1:]
    sure = _probabilities if facts.study.classes else _intervals
    found = [f"{facts.few}." if facts.few else "", *good, sure(facts), *uneven_sentences(facts)]
    found += selection_sentences(facts.selection, len(facts.study.y)) + facts.noise.sentences(len(facts.study.y))
    found += [UNSTABLE] * facts.unstable + [importance_text(facts.study.importance)]
    return [for_terminal(sentence) for sentence in found if sentence]


UNSTABLE = "The choice is unstable: most of these features are missing in more than half of the folds."


def found_text(facts: Facts, skill: ClassSkill) -> str:
    """How many rows of the class of interest are found, and how many predictions of it are right."""
    label = _quoted(str(facts.study.classes[skill.interest]))
    found = f"Of {count(skill.n, 'held-out row')} that are {label}, the model finds {skill.found:,}"
    first = f"Among the {skill.n:,} rows with the highest probability of {label}, {skill.first:,} are."
    if not skill.called:
        return f"{found}: it never predicts {label}. {first}"
    right = f"of {count(skill.called, 'prediction')} of {label}, {skill.found:,} are right"
    return f"{found} (recall {percent(skill.recall)}); {right} (precision {percent(skill.precision)}). {first}"


def skill_text(skill: ClassSkill) -> str:
    """Ranking and log loss, against those of the class shares."""
    better = f"{percent(skill.skill)} smaller" if skill.skill >= 0 else f"{percent(-skill.skill)} larger"
    clearly = "clearly better" if skill.clear else "not clearly better"
    return f"The log loss is {better} than that of the class shares ({clearly}); the AUC is {skill.auc:.2f}."


def uneven_sentences(facts: Facts) -> list[str]:
    """Coverage or calibration by groups of rows, where it differs from what is promised."""
    told = []
    for each in facts.evenness:
        if not each.uneven:
            continue
        observed = ", ".join(f"{100 * group.observed:.0f}" for group in each.groups[:-1])
        observed += f" and {percent(each.groups[-1].observed)}"
        if facts.study.classes:
            stated = ", ".join(f"{100 * group.expected:.0f}" for group in each.groups[:-1])
            stated += f" and {percent(each.groups[-1].expected)}"
            label = _quoted(str(facts.study.classes[1])) if len(facts.study.classes) == 2 else "of the predicted class"
            told.append(f"From low to high {each.by}, {observed} of the rows are {label}; stated were {stated}.")
        else:
            told.append(
                f"From low to high {each.by}, the {percent(COVERAGE)} intervals contain {observed} of the rows "
                "(by quarters)."
            )
    return told


def importance_text(importance: Importance | None) -> str:
    """Which columns matter to a model that keeps rows; empty for other models."""
    if importance is None:
        return ""
    if not importance.clear:
        return f"No feature matters clearly: shuffling any one of them does not raise the {importance.unit} clearly."
    raised = [
        f"{_quoted(each)} (+{number(mean, 2)})"
        for each, mean in zip(importance.names, importance.mean, strict=True)
        if each in importance.clear
    ]
    return (
        f"{len(raised):,} of {count(len(importance.names), 'feature')} clearly matter{'s' * (len(raised) == 1)}. "
        f"Shuffling a feature in held-out rows raises the {importance.unit}: {listed(raised)}."
    )


def _error(facts: Facts) -> str:
    classes = bool(facts.study.classes)
    error = error_text(facts.score.error, facts.score.error_se, percent=classes)
    how = f"{facts.study.n_folds}-fold cross-validation"
    if classes:
        return f"{error} of held-out rows are misclassified ({how})."
    return f"The error (RMSE) on held-out rows is {error} ({how})."


def _against_constant(facts: Facts) -> str:
    if facts.constant is None:
        return ""
    score, classes = facts.constant.score, bool(facts.study.classes)
    by = error_text(score.difference, score.difference_se, percent=classes)
    other = error_text(score.error, score.error_se, percent=classes)
    clearly = "clearly" if facts.constant.verdict == "worse" else "not clearly"
    return f"{score.title}: {other}. The model is {clearly} better (difference {by})."


def _expected(calibration: Calibration) -> str:
    return f"{100 * calibration.lower:.0f} to {percent(calibration.upper)} expected"


def _intervals(facts: Facts) -> str:
    calibration = facts.calibration
    return (
        f"{percent(calibration.observed)} of held-out rows lie in their {percent(COVERAGE)} intervals "
        f"({_expected(calibration)}): the intervals are {INTERVALS[facts.trust]}."
    )


def _probabilities(facts: Facts) -> str:
    calibration = facts.calibration
    return (
        f"{percent(calibration.observed)} of held-out rows are classified correctly; the probabilities predict "
        f"{percent(calibration.promised)} ({_expected(calibration)}): they are {PROBABILITIES[facts.trust]}."
    )


def selection_sentences(selection: Selection, n_rows: int | None) -> list[str]:
    """What a model keeps or claims."""
    n = len(selection.distinct)
    if selection.averaged:
        claims = f"It claims {n:,} of {count(len(selection.names), 'feature')}"
        claims += f" (inclusion probability at least {percent(CLAIMED)})."
        return [for_terminal(sentence) for sentence in [claims, *choice_sentences(selection)]]
    return [_kept(selection, n, n_rows)]


def choice_sentences(selection: Selection) -> list[str]:
    """What an averaged model says beyond its claims: credible sets, likely features, number of features."""
    return [*_set_sentences(selection), *likely_sentences(selection)]


def _set_sentences(selection: Selection) -> list[str]:
    sets = [
        f"{_of(found.output)}{set_text([_quoted(each) for each in found.names], found.probability)}"
        for found in selection.several
    ]
    told = [f"{text[:1].upper()}{text[1:]}." for text in sets[:SETS]]
    told += [f"There are {len(sets) - SETS} more such sets."] * (len(sets) > SETS)
    return [typeset(sentence) for sentence in told]


def likely_sentences(selection: Selection) -> list[str]:
    """Features that are likely but not claimed, and the number of features in the model."""
    likely = [f"{_named(effect)} ({chance(effect.probability)})" for effect in selection.likely]
    told = [f"Likely, but not claimed: {listed(likely)}."] * bool(likely)
    sizes = selection.sizes
    if len(sizes) == 1:
        told.append(f"In the model: {size_text(sizes[0].lower, sizes[0].median, sizes[0].upper)}.")
    elif sizes:
        low, high = min(size.median for size in sizes), max(size.median for size in sizes)
        range_ = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        told.append(f"In the model: {range_} features for each class (medians).")
    return [typeset(sentence) for sentence in told]


def _of(output: str) -> str:
    return f"{_quoted(output)}: " if output else ""


def _quoted(text: str) -> str:
    return f"“{name(text, 40)}”"


def _named(effect: Effect) -> str:
    return _quoted(effect.name) + (f" for {_quoted(effect.output)}" if effect.output else "")


def _kept(selection: Selection, n: int, n_rows: int | None) -> str:
    vectors = f"{selection.n_vectors:.0f}{f' of {n_rows:,}' if n_rows else ''} rows (relevance vectors)"
    if selection.what == "vector":
        return f"It keeps {vectors}."
    features = f"It keeps {n:,} of {count(len(selection.names), 'feature')}"
    return f"{features}." if math.isnan(selection.n_vectors) else f"{features} and {vectors}."
