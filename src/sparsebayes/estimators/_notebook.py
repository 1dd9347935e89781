"""How a fitted estimator shows itself in a notebook: below scikit-learn's diagram, what was kept."""

from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.types import FloatArray
from sparsebayes.estimators._kept import Kept, feature_names, kept

SHOWN = 8
"""Rows of a table; the others are counted."""
OUTPUTS = 4
"""Tables of a model with several outputs or classes; the others are counted."""
COVERAGE = 0.95
LONGEST = 60
"""Characters of a name."""

STYLE = (
    "<style>"
    ".sparsebayes{font:13px/1.5 system-ui,sans-serif;margin:.6em 0;color:inherit}"
    ".sparsebayes table{border-collapse:collapse;margin:.2em 0 .6em;background:none}"
    ".sparsebayes caption{text-align:left;font-weight:600;padding:.2em 0;color:inherit}"
    ".sparsebayes th,.sparsebayes td{padding:.1em .9em .1em 0;text-align:right;background:none;"
    "border:0;font-variant-numeric:tabular-nums}"
    ".sparsebayes thead th{font-weight:600;border-bottom:1px solid currentColor}"
    ".sparsebayes th:first-child{text-align:left;font-weight:400}"
    ".sparsebayes p{margin:.2em 0}"
    "</style>"
)


class NotebookMixin:
    """scikit-learn's notebook representation, followed by a table of what was kept once the estimator is fitted."""

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + kept_html(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += kept_html(self)
        return bundle


def kept_html(model: Any) -> str:
    """What a model has kept, as HTML; nothing where it is not fitted."""
    try:
        check_is_fitted(model)
        names = feature_names(model)
        parts = kept(model)
        tables = [_table(part, names) for part in parts[:OUTPUTS]]
        if len(parts) > OUTPUTS:
            tables.append(f"<p>… and {len(parts) - OUTPUTS} more outputs or classes</p>")
        return f'<div class="sparsebayes">{STYLE}{"".join(tables)}<p>{_summary(model)}</p></div>'
    except NotFittedError:
        return ""
    except Exception as error:  # a cell must show its estimator, whatever state that is in
        return f"<p>(what was kept cannot be shown: {escape(f'{type(error).__name__}: {error}')})</p>"


def _table(part: Kept, names: Any) -> str:
    n_all = f" of {len(names)}" if part.what == "feature" else ""
    caption = f"{part.output}: " if part.output else ""
    caption += f"kept {len(part.index)}{n_all} {part.what}{'' if len(part.index) == 1 and not n_all else 's'}"
    if not len(part.index):
        return f"<table><caption>{escape(caption)}</caption></table>"
    gain, interval = part.gain, part.interval(COVERAGE)
    certain = bool(np.isfinite(interval).all())
    head = [part.what, "weight"]
    head += [f"{100 * COVERAGE:.0f} % interval"] if certain else []
    head += ["evidence (nats)"] if len(gain) else []
    rows = []
    for k in part.order()[:SHOWN]:
        j = part.index[k]
        cells = [f"{part.weight[k]:+.4g}"]
        if certain:
            cells.append(f"{interval[k, 0]:+.4g} … {interval[k, 1]:+.4g}")
        if len(gain):
            cells.append(f"{gain[j]:.1f}")
        name = short(str(names[j])) if part.what == "feature" else f"row {j}"
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>')
    more = len(part.index) - len(rows)
    if more > 0:
        rows.append(f'<tr><th scope="row">… and {more} more</th>{"<td></td>" * (len(head) - 1)}</tr>')
    header = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{header}</tr></thead>{''.join(rows)}</table>"


def _summary(model: Any) -> str:
    """Evidence, noise and how the search ended, in one line."""
    parts = []
    evidence = np.atleast_1d(getattr(model, "log_evidence_", np.nan))
    if np.isfinite(evidence).all():
        parts.append("log evidence " + _several(evidence, ".1f"))
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
    if model.converged_:
        parts.append(f"converged in {model.n_iter_} steps")
    else:
        parts.append(f"<strong>not converged after {model.n_iter_} steps: raise max_iter</strong>")
    return " · ".join(parts)


def _several(values: FloatArray, form: str) -> str:
    shown = ", ".join(f"{value:{form}}" for value in values[:OUTPUTS])
    return shown + ", …" * (len(values) > OUTPUTS)


def short(name: str, longest: int = LONGEST) -> str:
    """A name on one line, with its middle left out where it is too long: both ends tell names apart."""
    name = " ".join(name.split())
    head = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[: longest - 1 - head]}…{name[-head:]}"
