"""The verdict, which a report begins with: how good, how sure, what matters, in plain words with numbers."""

from dataclasses import dataclass

import numpy as np

from sparsebayes.app.facts import COVERAGE, Facts
from sparsebayes.app.report.words import NO_BREAK, count, name, names, number, percent, plus_minus

TOLD = 4
"""Features that the verdict names."""


@dataclass(frozen=True)
class Answer:
    """To one question: the number that says most, what it is, and the sentence about it."""

    question: str
    figure: str
    label: str
    text: str


def lede(facts: Facts) -> str:
    """The whole verdict in a sentence."""
    study = facts.study
    target = f"“{name(study.target)}”"
    if study.classes:
        good = f"The model tells {target} rightly for {percent(1 - facts.score.error)} of the rows that it has not seen"
    elif facts.explained > 0:
        good = f"The model explains {percent(facts.explained)} of the variance of {target} in rows that it has not seen"
    else:
        good = f"The model foretells {target} no better than its mean does"
    return f"{good}, {_doubt_in_words(facts)}, and {_needs(facts)}."


def _doubt_in_words(facts: Facts) -> str:
    subject = "its probabilities" if facts.study.classes else "its intervals"
    return {
        "right": f"{subject} hold what they promise",
        "too sure": f"{subject} promise more than they hold",
        "too careful": f"{subject} hold more than they promise",
    }[facts.verdict_on_doubt]


def _needs(facts: Facts) -> str:
    n, everything = len(facts.distinct), len(facts.names)
    if facts.what == "vector":
        return f"it rests on {n:,} of {count(len(facts.study.y), 'row')}" if n else "it keeps nothing"
    return (
        f"it needs {n:,} of {count(everything, 'feature')}" if n else f"none of {count(everything, 'feature')} is kept"
    )


def answers(facts: Facts) -> list[Answer]:
    """To the three questions of a reader."""
    good = _right if facts.study.classes else _close
    sure = _calibrated if facts.study.classes else _covered
    matters = _vectors if facts.what == "vector" else _features
    return [good(facts), sure(facts), matters(facts)]


def folds(facts: Facts) -> str:
    """How many folds the numbers come from."""
    done, asked = facts.n_folds, facts.study.n_folds
    return count(done, "fold") if done == asked else f"{done} of {asked} folds"


def _close(facts: Facts) -> Answer:
    error = plus_minus(facts.score.error, facts.score.error_se)
    text = (
        f"Predictions of unseen rows are off by {error} (root mean square error over {folds(facts)}, ± standard "
        f"error); their mean alone would be off by {number(facts.plain)}. {against_the_best(facts)}"
    )
    return Answer("How good?", percent(facts.explained), "of the variance of unseen rows explained", text)


def _right(facts: Facts) -> Answer:
    error = error_text(facts, facts.score.error, facts.score.error_se)
    largest = facts.classes[int(np.bincount(facts.truth).argmax())]
    text = (
        f"It is wrong for {error} of the unseen rows (over {folds(facts)}, ± standard error); always to say "
        f"“{largest}” would be wrong for {percent(facts.plain)}. {against_the_best(facts)}"
    )
    return Answer("How good?", percent(1 - facts.score.error), "of unseen rows classified rightly", text)


def error_text(facts: Facts, error: float, se: float, *, sign: bool = False) -> str:
    """An error or a difference of two: in the units of the target, or in percent of the rows."""
    if not facts.study.classes:
        return plus_minus(error, se, sign=sign)
    return plus_minus(100 * error, 100 * se, sign=sign) + (f"{NO_BREAK}%" if np.isfinite(error) else "")


def against_the_best(facts: Facts) -> str:
    """How the best of the other models compares."""
    others = [score for score in facts.study.scores[1:] if np.isfinite(score.error)]
    if not others:
        return ""
    best = min(others, key=lambda score: score.error)
    low, high = facts.difference_interval(best)
    who = (
        f"The best of the {len(others)} others, {name(best.title)}, is" if len(others) > 1 else f"{name(best.title)} is"
    )
    how = "clearly worse" if low > 0 else "clearly better" if high < 0 else "not clearly different"
    by = error_text(facts, best.difference, best.difference_se, sign=True)
    return f"{who} {how} (difference in error {by})."


def _covered(facts: Facts) -> Answer:
    _, came, low, high = facts.doubt
    level, by_chance = percent(COVERAGE), f"{100 * low:.0f} to {percent(high)}"
    advice = {
        "right": "You can take the intervals at their word.",
        "too sure": "The intervals are too narrow: trust them less than they say.",
        "too careful": "The intervals are wider than they need to be.",
    }[facts.verdict_on_doubt]
    half = np.diff(facts.ends, axis=1) / 2
    text = (
        f"If the model tells the truth, its {level} intervals hold {by_chance} of {count(len(facts.truth), 'row')}. "
        f"{advice} They reach {number(float(np.median(half)))} to either side (median)."
    )
    return Answer("How sure?", percent(came), f"of unseen rows lie in their {level} intervals", text)


def _calibrated(facts: Facts) -> Answer:
    sure, came, low, high = facts.doubt
    advice = {
        "right": "You can take the probabilities at their word.",
        "too sure": "The probabilities are too bold: trust them less than they say.",
        "too careful": "The probabilities are more careful than they need to be.",
    }[facts.verdict_on_doubt]
    text = (
        f"It was right for {percent(came)} of {count(len(facts.truth), 'unseen row')}; probabilities that tell the "
        f"truth would make it right for {100 * low:.0f} to {percent(high)}. {advice}"
    )
    log_score = facts.score.log_score
    if np.isfinite(log_score):
        nats = plus_minus(log_score, facts.score.log_score_se)
        text += f" Its log loss is {nats} nats; guessing evenly has {number(float(np.log(len(facts.classes))))}."
    return Answer("How sure?", percent(sure), "sure of its answer, on average", text)


def _features(facts: Facts) -> Answer:
    n, everything = len(facts.distinct), len(facts.names)
    figure, label = f"{n:,} of {everything:,}", "features kept"
    if not n:
        text = "No feature brings the evidence that is asked of it: the prediction is the same for all rows."
        return Answer("What matters?", figure, label, text + _nearly(facts))
    sized = [f"“{name(effect.name, 40)}” ({number(effect.weight, 2, sign=facts.signed)})" for effect in facts.distinct]
    told = n if n <= TOLD + 1 else TOLD
    more = f" and {n - told:,} more" if n > told else ""
    text = f"Most of all {_joined(sized[:told], more)}: {facts.weight_label.partition(', 95')[0]}."
    if len(facts.frequency):
        text += f" {_always(facts)} kept in every one of {folds(facts)}."
    if facts.n_vectors:
        text += f" The model rests on {count(facts.n_vectors, 'row')}."
    return Answer("What matters?", figure, label, text + _nearly(facts))


def _always(facts: Facts) -> str:
    n = sum(facts.frequency[effect.index] == 1 for effect in facts.distinct)
    if n == len(facts.distinct):
        return "It was" if n == 1 else "All of them were"
    return f"{n} of them {'was' if n == 1 else 'were'}" if n else "None of them was"


def _joined(parts: list[str], more: str) -> str:
    if more or len(parts) == 1:
        return ", ".join(parts) + more
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _nearly(facts: Facts) -> str:
    return f" Nearly kept: {names(facts.near, TOLD)}." if facts.near else ""


def _vectors(facts: Facts) -> Answer:
    n, rows = len(facts.distinct), len(facts.study.y)
    text = (
        f"A kernel model compares a row with examples that it keeps (relevance vectors), here {percent(n / rows)} of "
        "the rows."
    )
    if len(facts.names) > 1:
        text += (
            f" It uses all {len(facts.names):,} features together and does not weigh them; models that do are ard, slr "
            "and drvm."
        )
    if not n:
        text = "No row brings enough evidence to be kept as an example: the prediction is the same for all rows."
    return Answer("What matters?", f"{n:,} of {rows:,}", "rows kept as examples", text)
