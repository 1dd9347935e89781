"""The summary at the top of a report: how good, how sure, what matters, in plain words with numbers."""

from dataclasses import dataclass

import numpy as np

from sparsebayes.app import words
from sparsebayes.app.class_skill import ClassSkill
from sparsebayes.app.facts import COVERAGE, Facts
from sparsebayes.app.selection import Effect
from sparsebayes.app.sentences import (
    INTERVALS,
    PROBABILITIES,
    UNSTABLE,
    choice_sentences,
    found_text,
    importance_text,
    skill_text,
    uneven_sentences,
)
from sparsebayes.app.words import count, name, names, number, percent, plus_minus
from sparsebayes.core.credible import CLAIMED

NAMED = 4
"""Features that the summary names."""


@dataclass(frozen=True)
class Answer:
    """The answer to one question: the main number, its label, and an explanation."""

    question: str
    figure: str
    label: str
    text: str


def lede(facts: Facts) -> str:
    """The whole summary in a sentence or two. Few rows are said first."""
    few = f"{name(facts.few, 120)}. " if facts.few else ""
    return f"{few}{_good(facts)}, {_calibration(facts)}, and {_needs(facts)}."


def _good(facts: Facts) -> str:
    target, skill = f"“{name(facts.study.target)}”", facts.skill
    if skill is None:
        if facts.explained > 0:
            return f"The model explains {percent(facts.explained)} of the variance of {target} in held-out rows"
        return f"The model predicts {target} no better than its mean does"
    if skill.skill <= 0:
        return f"The model predicts {target} no better than the class shares do"
    if skill.rare:
        label = class_names(facts)[skill.interest]
        rows = f"{skill.found:,} of {count(skill.n, 'held-out row')} that are “{label}”"
        right = f", and {percent(skill.precision)} of its “{label}” predictions are right" if skill.called else ""
        return f"The model finds {rows} ({percent(skill.recall)}){right}"
    return f"The model predicts {target} correctly for {percent(1 - facts.score.error)} of held-out rows"


def _calibration(facts: Facts) -> str:
    what = "probabilities" if facts.study.classes else "intervals"
    return f"its {what} are {(PROBABILITIES if facts.study.classes else INTERVALS)[facts.trust]}"


def _needs(facts: Facts) -> str:
    n, everything = len(facts.selection.distinct), len(facts.selection.names)
    importance = facts.study.importance
    if importance is not None:
        clear = len(importance.clear)
        return f"{f'{clear:,}' if clear else 'none'} of {count(len(importance.names), 'feature')} clearly matter" + (
            "s" * (clear == 1)
        )
    if facts.selection.what == "vector":
        return f"it keeps {n:,} of {count(len(facts.study.y), 'row')}" if n else "it keeps nothing"
    verb = "claims" if facts.selection.averaged else "keeps"
    told = f"it {verb} {f'{n:,}' if n else 'none'} of {count(everything, 'feature')}"
    if facts.unstable:
        return f"{told}, but fits without a fold choose others"
    always = sum(effect.frequency == 1 for effect in facts.selection.distinct)
    part = len(facts.selection.frequency) and always < n
    return f"{told}, {always:,} of them in every fold" if part else told


def answers(facts: Facts) -> list[Answer]:
    """The answers to a reader's three questions."""
    good = _accuracy if facts.study.classes else _error
    sure = _probabilities if facts.study.classes else _intervals
    matters = _vectors if facts.selection.what == "vector" else _features
    if facts.skill is not None and facts.skill.rare:
        good = _rare
    if facts.study.importance is not None:
        matters = _shuffled
    return [good(facts), sure(facts), matters(facts)]


def folds(facts: Facts) -> str:
    """How many folds the numbers come from."""
    done, asked = facts.n_folds, facts.study.n_folds
    return count(done, "fold") if done == asked else f"{done} of {asked} folds"


def class_names(facts: Facts) -> list[str]:
    """The classes as text."""
    return [name(label, 40) for label in facts.study.classes]


def error_text(facts: Facts, error: float, se: float, *, sign: bool = False) -> str:
    """An error or a difference of errors: in the units of the target, or in percent of the rows."""
    return words.error_text(error, se, percent=bool(facts.study.classes), sign=sign)


def _error(facts: Facts) -> Answer:
    error = plus_minus(facts.score.error, facts.score.error_se)
    text = f"The root mean square error on held-out rows is {error} (over {folds(facts)}, ± standard error)."
    if facts.constant is not None:
        text += f" Predicting the mean gives {number(facts.constant.score.error)}."
    figure = percent(facts.explained) if facts.explained > 0 else "None"
    return Answer("How good?", figure, "of the variance of held-out rows explained", text + _best_other(facts))


def _accuracy(facts: Facts) -> Answer:
    error = error_text(facts, facts.score.error, facts.score.error_se)
    text = f"{error} of held-out rows are misclassified (over {folds(facts)}, ± standard error)."
    if facts.constant is not None:
        largest = class_names(facts)[int(np.bincount(facts.truth).argmax())]
        wrong = percent(facts.constant.score.error)
        text += f" A model that uses no feature (most frequent class: “{largest}”) misclassifies {wrong}."
    if facts.skill is not None:
        text += f" {skill_text(facts.skill)}"
    figure = percent(1 - facts.score.error)
    return Answer("How good?", figure, "of held-out rows classified correctly", text + _best_other(facts))


def _rare(facts: Facts) -> Answer:
    skill = facts.skill
    assert skill is not None
    label = class_names(facts)[skill.interest]
    wrong = error_text(facts, facts.score.error, facts.score.error_se)
    text = f"{found_text(facts, skill)} {skill_text(skill)} {wrong} of all held-out rows are misclassified"
    if facts.constant is not None:
        text += f"; a model that uses no feature misclassifies {percent(facts.constant.score.error)}"
    text += f". A row is predicted to be of its most probable class. To find more of “{label}”, use the probabilities."
    return Answer("How good?", percent(skill.recall), f"of “{label}” found", text + _best_other(facts))


def _best_other(facts: Facts) -> str:
    """How the best of the other models compares."""
    others = [other for other in facts.others if np.isfinite(other.score.error)]
    if not others:
        return ""
    best = min(others, key=lambda other: other.score.error)
    title = name(best.score.title)
    who = f"The best of the {len(others)} other models, {title}, is" if len(others) > 1 else f"{title} is"
    how = {"worse": "clearly worse", "better": "clearly better", "unclear": "not clearly different"}[best.verdict]
    by = error_text(facts, best.score.difference, best.score.difference_se, sign=True)
    return f" {who} {how} (difference in error {by})."


def _intervals(facts: Facts) -> Answer:
    found, level = facts.calibration, percent(COVERAGE)
    advice = {
        "calibrated": "The intervals can be trusted.",
        "uneven": " ".join(uneven_sentences(facts)),
        "unknown": f"{name(facts.few, 120)}.",
        "overconfident": "The intervals are too narrow: new observations will fall outside more often than stated.",
        "underconfident": "The intervals are wider than necessary.",
    }[facts.trust]
    half = np.diff(facts.intervals, axis=1) / 2
    text = (
        f"Well calibrated {level} intervals would contain {_range(facts)} of {count(len(facts.truth), 'row')}. "
        f"{advice} The median half-width is {number(float(np.median(half)))}."
    )
    return Answer("How sure?", percent(found.observed), f"of held-out rows lie in their {level} intervals", text)


def _probabilities(facts: Facts) -> Answer:
    found = facts.calibration
    advice = {
        "calibrated": "The probabilities can be trusted.",
        "uneven": " ".join(uneven_sentences(facts)),
        "unknown": f"{name(facts.few, 120)}.",
        "overconfident": "The probabilities are too confident: predictions are wrong more often than stated.",
        "underconfident": "The probabilities are not confident enough: predictions are right more often than stated.",
    }[facts.trust]
    text = (
        f"{percent(found.observed)} of {count(len(facts.truth), 'held-out row')} are classified correctly. With well "
        f"calibrated probabilities it would be {_range(facts)}. {advice}"
    )
    figure, label = percent(found.promised), "mean probability of the predicted class"
    if facts.skill is not None and facts.skill.rare:
        figure, label, text = _expected_rows(facts, facts.skill, advice)
    log_score = facts.score.log_score
    if np.isfinite(log_score):
        nats = plus_minus(log_score, facts.score.log_score_se)
        uniform = number(float(np.log(len(facts.study.classes))))
        text += f" The log loss is {nats} nats; equal probabilities for all classes have {uniform}."
    return Answer("How sure?", figure, label, text)


def _expected_rows(facts: Facts, skill: ClassSkill, advice: str) -> tuple[str, str, str]:
    """Of a rare class: how many rows of it the probabilities expect. That of the predicted class is always high."""
    expected = float(facts.study.held_out.probabilities[:, skill.interest].sum())
    name_of = class_names(facts)[skill.interest]
    text = f"Added up, the probabilities of “{name_of}” expect {number(expected)} rows; {skill.n:,} of "
    text += f"{count(len(facts.truth), 'held-out row')} are “{name_of}”. {advice}"
    return number(expected, 2), f"rows of “{name_of}” expected; there are {skill.n:,}", text


def _range(facts: Facts) -> str:
    return f"{100 * facts.calibration.lower:.0f} to {percent(facts.calibration.upper)}"


def _features(facts: Facts) -> Answer:
    selection = facts.selection
    n, everything = len(selection.distinct), len(selection.names)
    figure, label = f"{n:,} of {everything:,}", "features kept"
    if selection.averaged:
        label = f"features claimed (inclusion probability at least {percent(CLAIMED)})"
    if not n:
        text = "No feature adds enough evidence: the prediction is the same for all rows."
        if selection.averaged:
            text = f"No feature has an inclusion probability of {percent(CLAIMED)} or more."
        return Answer("What matters?", figure, label, text + _nearly(facts))
    sized = [
        f"“{name(effect.name, 40)}” ({number(effect.weight, 2, sign=selection.signed)}{_in_folds(facts, effect)})"
        for effect in selection.distinct
    ]
    shown = n if n <= NAMED + 1 else NAMED
    more = f" and {n - shown:,} more" if n > shown else ""
    text = f"Most important, with the {selection.label}: {_joined(sized[:shown], more)}."
    if len(selection.frequency):
        verb = "claimed" if selection.averaged else "kept"
        text += f" {_always(facts)} {verb} in every one of {folds(facts)}."
    if facts.unstable:
        text += f" {UNSTABLE}"
    if np.isfinite(selection.n_vectors):
        text += f" The model keeps {count(int(selection.n_vectors), 'row')} as relevance vectors."
    return Answer("What matters?", figure, label, text + _nearly(facts))


def _in_folds(facts: Facts, effect: Effect) -> str:
    """How many folds keep the feature, if not all do."""
    n = len(facts.study.kept_by_fold)
    return f", in {effect.frequency * n:.0f} of {n} folds" if effect.frequency < 1 else ""


def _always(facts: Facts) -> str:
    distinct = facts.selection.distinct
    n = sum(effect.frequency == 1 for effect in distinct)
    if n == len(distinct):
        return "It is" if n == 1 else "All of them are"
    return f"{n} of them {'is' if n == 1 else 'are'}" if n else "None of them is"


def _joined(parts: list[str], more: str) -> str:
    if more or len(parts) == 1:
        return ", ".join(parts) + more
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _nearly(facts: Facts) -> str:
    """Features that are not kept or claimed and may matter all the same."""
    if facts.selection.averaged:
        return " " + " ".join(choice_sentences(facts.selection))
    return f" Nearly kept: {names(facts.selection.near, NAMED)}." if facts.selection.near else ""


def _shuffled(facts: Facts) -> Answer:
    importance = facts.study.importance
    assert importance is not None
    figure, label = f"{len(importance.clear):,} of {len(importance.names):,}", "features clearly matter"
    n = len(facts.selection.distinct)
    text = f"{importance_text(importance)} The model compares new rows with {count(n, 'kept row')} (relevance vectors)."
    return Answer("What matters?", figure, label, text)


def _vectors(facts: Facts) -> Answer:
    n, rows, features = len(facts.selection.distinct), len(facts.study.y), len(facts.selection.names)
    figure, label = f"{n:,} of {rows:,}", "rows kept as examples"
    if not n:
        text = "No row adds enough evidence to be kept: the prediction is the same for all rows."
        return Answer("What matters?", figure, label, text)
    text = f"A kernel model compares new rows with kept rows (relevance vectors), here {percent(n / rows)} of the rows."
    if features > 1:
        text += (
            f" It uses all {features:,} features without weights; the models ard, slr, drvm and pfcvm select features."
        )
    return Answer("What matters?", figure, label, text)
