"""The evidence during the search."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.types import FloatArray
from sparsebayes.inspection.display import Display, column, unwrapped
from sparsebayes.inspection.style import GREY, line


class EvidencePathDisplay(Display):
    """The log evidence after each step of the search.

    Parameters
    ----------
    paths : sequence of ndarray
        The objective before each step, one path per output or class.
    labels : sequence of str
        Names of the paths.
    converged : bool
        Whether the search converged.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last `plot`.
    """

    def __init__(self, *, paths: Sequence[FloatArray], labels: Sequence[str], converged: bool = True) -> None:
        self.paths, self.labels, self.converged = list(paths), list(labels), converged

    @classmethod
    def from_estimator(cls, estimator: Any) -> "EvidencePathDisplay":
        """From a fitted estimator with an `evidence_path_`, or a pipeline that ends in one."""
        model, _, _ = unwrapped(estimator)
        check_is_fitted(model, "evidence_path_")
        paths = model.evidence_path_
        if not isinstance(paths, list):
            return cls(paths=[np.asarray(paths)], labels=[""], converged=bool(model.converged_))
        labels = getattr(model, "classes_", [f"output {k}" for k in range(len(paths))])
        return cls(paths=paths, labels=[str(label) for label in labels], converged=bool(model.converged_))

    def plot(self, ax: Any = None, *, quantity: str = "evidence") -> "EvidencePathDisplay":
        """Draw the paths.

        Parameters
        ----------
        ax : matplotlib axes, optional
        quantity : {"evidence", "to-gain"}, default="evidence"
            The evidence, or its distance from the maximum on a logarithmic axis.
        """
        if quantity not in ("evidence", "to-gain"):
            raise ValueError(f"quantity={quantity!r} must be 'evidence' or 'to-gain'")
        with self._canvas(ax, (6.4, 3.4)) as ax:
            for k, path in enumerate(self.paths):
                self._draw(ax, k, path, quantity)
            if quantity == "to-gain":
                ax.set_yscale("log")
            ax.set(
                xlabel="step", ylabel="log evidence (nats)" if quantity == "evidence" else "below the maximum (nats)"
            )
            ax.xaxis.get_major_locator().set_params(integer=True)
            last = f" at {self.paths[0][-1]:.1f} nats" if len(self.paths) == 1 and len(self.paths[0]) else ""
            ax.set_title(self._title() + last)
            if len(self.paths) > 1:
                ax.legend(title=None)
            self._drawn(ax)
        return self

    def _draw(self, ax: Any, k: int, path: FloatArray, quantity: str) -> None:
        path = path[np.isfinite(path)]
        if not len(path):
            return
        values = path if quantity == "evidence" else path.max() - path
        steps = np.arange(1, len(path) + 1)
        shown = values > 0 if quantity == "to-gain" else np.ones(len(path), dtype=bool)
        marker = "." if len(path) <= 60 else None
        ax.plot(steps[shown], values[shown], lw=1.8, marker=marker, label=self.labels[k] or None, **line(k))
        if quantity == "evidence" and len(self.paths) == 1:
            ax.axhline(path[-1], color=GREY, lw=0.8, ls=":", zorder=0)

    def _title(self) -> str:
        steps = max((len(path) for path in self.paths), default=0)
        return f"{steps} step{'s' * (steps != 1)}, {'converged' if self.converged else 'not converged'}"

    def to_table(self) -> dict[str, list[Any]]:
        """One row per step: path, step and log evidence."""
        return {
            "path": [label for label, path in zip(self.labels, self.paths, strict=True) for _ in path],
            "step": [step for path in self.paths for step in range(1, len(path) + 1)],
            "log_evidence": [value for path in self.paths for value in column(path)],
        }

    def text(self) -> str:
        """First and last value of the evidence in one sentence."""
        told = []
        for label, path in zip(self.labels, self.paths, strict=True):
            known = path[np.isfinite(path)]
            if len(known):
                told.append(f"{label}: " * bool(label) + f"from {known[0]:.1f} to {known[-1]:.1f} nats")
        return f"The log evidence ({self._title()})" + (f": {'; '.join(told)}." if told else " is not finite.")
