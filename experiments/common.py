"""What the reproductions share: the data of `benchmarks/`, figures, and lines that put theirs beside ours."""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import numpy as np

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
sys.path.append(str(ROOT / "benchmarks"))  # sets.py, problems.py, contenders.py

OURS, THEIRS, THIRD, FOURTH = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
"""Colours that colour-blind readers can tell apart."""


def fitted(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    """The model, and the processor seconds of its fit; warnings off, because the tables show what came of it."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model, time.process_time() - start


def draws(draw: Callable[[int], Any], repeats: int, name: str) -> Iterator[Any]:
    """The data of the first seeds; none, and a message, where the set is not in the data folder."""
    for seed in range(repeats):
        try:
            data = draw(seed)
        except FileNotFoundError as missing:
            print(f"{name}: no {Path(missing.filename).name} in the data folder, left out")
            return
        yield data


def rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def mean_and_error(values: Any, digits: int = 3) -> str:
    """Mean ± its standard error."""
    values = np.asarray(values, dtype=float)
    spread = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.{digits}g} ± {spread:.2g}"


def line(*cells: object) -> None:
    """A row of a Markdown table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def header(*cells: str) -> None:
    """The head of a Markdown table."""
    line(*cells)
    line(*["---"] * len(cells))


def draw_climbs(ax: Any, paths: dict[str, Any], colours: dict[str, str]) -> None:
    """How far several objectives are below the highest end of all, by steps; ends within a thousandth are one end."""
    best = max(np.max(path) for path in paths.values())
    for name, path in paths.items():
        below = np.maximum(best - np.asarray(path), 1e-3)
        ax.plot(np.arange(1, len(below) + 1), below, color=colours[name], label=f"{name}: ends {below[-1]:.2g} below")
    ax.set(xscale="log", yscale="log", xlabel="step", ylabel="nats below the highest end")
    ax.legend(frameon=False, fontsize=8)


def save(figure: Any, path: Path, dpi: int = 90) -> None:
    """Write a figure and say where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=dpi)
    print(f"drawn: {path.name} ({path.stat().st_size / 1000:.0f} kB)")
