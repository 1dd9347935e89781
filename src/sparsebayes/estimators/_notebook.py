"""The notebook representation of a fitted estimator: scikit-learn's diagram, and a table of the kept features."""

from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.types import FloatArray
from sparsebayes.estimators._kept import Choice, Kept, feature_names, kept
from sparsebayes.estimators._words import listed, probable, set_text, short, size_text

SHOWN = 8
"""Rows of a table; the others are counted."""
OUTPUTS = 4
"""Tables of a model with several outputs or classes; the others are counted."""
COVERAGE = 0.95

STYLE = (
    "<style>"
    ".sparsebayes{font:13px/1.5 system-ui,sans-serif;margin:.6em 0;color:inherit}"
    ".sparsebayes table{border-collapse:collapse;margin:.2em 0 .6em;background:none}"
    ".sparsebayes caption{text-align:left;font-weight:600;padding:.2em 0;color:inherit;white-space:nowrap}"
    ".sparsebayes th,.sparsebayes td{padding:.1em .9em .1em 0;text-align:right;background:none;"
    "border:0;font-variant-numeric:tabular-nums}"
    ".sparsebayes thead th{font-weight:600;border-bottom:1px solid currentColor}"
    ".sparsebayes th:first-child{text-align:left;font-weight:400}"
    ".sparsebayes p{margin:.2em 0}"
    "</style>"
)


class NotebookMixin:
    """scikit-learn's notebook representation and, once the estimator is fitted, a table of what it keeps or claims."""

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + kept_html(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += kept_html(self)
        return bundle


def kept_html(model: Any) -> str:
    """What a model keeps or claims, as HTML; nothing if it is not fitted."""
    try:
        check_is_fitted(model)
        names = feature_names(model)
        parts = kept(model)
        tables = [_table(part, names) + _choice(part.choice, names) for part in parts[:OUTPUTS]]
        if len(parts) > OUTPUTS:
            tables.append(f"<p>… and {len(parts) - OUTPUTS} more outputs or classes</p>")
        return f'<div class="sparsebayes">{STYLE}{"".join(tables)}<p>{_summary(model)}</p></div>'
    except NotFittedError:
        return ""
    except Exception as error:  # a cell must show its estimator, whatever state that is in
        return f"<p>(what was kept cannot be shown: {escape(f'{type(error).__name__}: {error}')})</p>"


def _table(part: Kept, names: Any) -> str:
    caption = f"{part.output}: " * bool(part.output) + _caption(part, len(names))
    if not len(part.index):
        return f"<table><caption>{escape(caption)}</caption></table>"
    head, lines = _columns(part, names)
    rows = [
        f'<tr><th scope="row">{escape(line[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in line[1:])}</tr>'
        for line in lines
    ]
    more = len(part.index) - len(rows)
    if more > 0:
        rows.append(f'<tr><th scope="row">… and {more} more</th>{"<td></td>" * (len(head) - 1)}</tr>')
    header = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{header}</tr></thead>{''.join(rows)}</table>"


def _caption(part: Kept, n_features: int) -> str:
    if part.choice is not None:
        return f"claims {len(part.index)} of {n_features} features (inclusion probability at least 90 %)"
    n_all = f" of {n_features}" if part.what == "feature" else ""
    return f"kept {len(part.index)}{n_all} {part.what}{'' if len(part.index) == 1 and not n_all else 's'}"


def _columns(part: Kept, names: Any) -> tuple[list[str], list[list[str]]]:
    """Titles and cells of the table; columns that do not apply to the model are left out."""
    gain, choice, interval = part.gain, part.choice, part.interval(COVERAGE)
    certain = bool(np.isfinite(interval).all())
    stand_ins = choice is not None and any(choice.stand_ins(j) for j in part.index.tolist())
    head = [part.what] + ["probability"] * (choice is not None) + ["weight"]
    head += [f"{100 * COVERAGE:.0f} % interval"] * certain + ["evidence (nats)"] * bool(len(gain))
    head += ["or instead"] * stand_ins
    lines = []
    for k in part.order()[:SHOWN].tolist():
        j = int(part.index[k])
        cells = [short(str(names[j])) if part.what == "feature" else f"row {j}"]
        cells += [probable(choice.probability[j])] if choice is not None else []
        cells.append(f"{part.weight[k]:+.4g}")
        cells += [f"{interval[k, 0]:+.4g} … {interval[k, 1]:+.4g}"] * certain
        cells += [f"{gain[j]:.1f}"] if len(gain) else []
        if choice is not None and stand_ins:
            cells.append(_names(choice.stand_ins(j), names))
        lines.append(cells)
    return head, lines


def _names(features: Any, names: Any) -> str:
    return listed([short(str(names[j])) for j in features])


def _choice(choice: Choice | None, names: Any) -> str:
    """Credible sets, likely features and the number of features of an averaged model."""
    if choice is None:
        return ""
    told = [set_text([short(str(names[j])) for j in found.features], found.probability) for found in choice.several()]
    lines = [f"{text[:1].upper()}{text[1:]}" for text in told[:SHOWN]]
    lines += [f"… and {len(told) - SHOWN} more such sets"] * (len(told) > SHOWN)
    likely = [f"{short(str(names[j]))} ({probable(choice.probability[j])})" for j in choice.likely()]
    lines += [f"Likely, not claimed: {listed(likely)}"] * bool(likely)
    lines.append(f"In the model: {size_text(*choice.n_features())}")
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _summary(model: Any) -> str:
    """Evidence, noise and how the search ended, in one line."""
    parts = []
    evidence = np.atleast_1d(getattr(model, "log_evidence_", np.nan))
    if np.isfinite(evidence).all():
        best = "of the best single model " * hasattr(model, "inclusion_probability_")
        parts.append(f"log evidence {best}{_several(evidence, '.1f')}")
    if hasattr(model, "noise_variance_"):
        what = "noise scale " if hasattr(model, "noise_freedom_") else "noise standard deviation "
        parts.append(what + _several(np.sqrt(np.atleast_1d(model.noise_variance_)), ".3g"))
    if hasattr(model, "noise_freedom_"):
        parts.append("noise degrees of freedom " + _several(np.atleast_1d(model.noise_freedom_), ".3g"))
    if hasattr(model, "dispersion_"):
        parts.append(f"dispersion {model.dispersion_:.3g}")
    if getattr(model, "feature_weights_", None) is not None and hasattr(model, "relevance_indices_"):
        indices = model.relevance_indices_
        n = len(np.unique(np.concatenate(indices))) if isinstance(indices, list) else len(indices)
        parts.append(f"{n} relevance vectors")
    return " · ".join([*parts, _ending(model)])


def _ending(model: Any) -> str:
    """Whether the search and, of an averaged model, the chains have converged."""
    averaged = hasattr(model, "inclusion_probability_")
    if not (model.model_ if averaged else model).converged_:
        return f"<strong>not converged after {model.n_iter_} steps: raise max_iter</strong>"
    if not averaged:
        return f"converged in {model.n_iter_} steps"
    if not model.converged_:
        return f"<strong>the chains do not agree after {model.n_flips_:,} flips: raise max_flips</strong>"
    return f"converged in {model.n_iter_} steps and {model.n_flips_:,} flips of each chain"


def _several(values: FloatArray, form: str) -> str:
    shown = ", ".join(f"{value:{form}}" for value in values[:OUTPUTS])
    return shown + ", …" * (len(values) > OUTPUTS)
