"""Draws the figures of the documents that come from examples/ again.

python docs/figures/from_examples.py            all of them
python docs/figures/from_examples.py counts     those of examples/counts.py
"""

import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FIGURES = Path(__file__).parent
FILES = {
    "counts": "counts",
    "far_variance": "far_variance",
    "find_the_truth": "find_the_truth",
    "inspect_a_model": "inspect_{label}",
    "lead_field": "lead_field",
    "outliers": "outliers",
    "unknown_noise": "unknown_noise",
    "which_features": "example_which_features",
}
"""The file of an example's figure; `label` is what the example calls each of several figures."""


def draw(example: str) -> None:
    """Run an example and save its figures."""
    runpy.run_path(str(FIGURES.parents[1] / "examples" / f"{example}.py"), run_name="__main__")
    for number in plt.get_fignums():
        figure = plt.figure(number)
        figure.savefig(
            FIGURES / f"{FILES[example].format(label=figure.get_label())}.png", dpi=100, pil_kwargs={"optimize": True}
        )
    plt.close("all")


if __name__ == "__main__":
    for name in sys.argv[1:] or FILES:
        draw(name)
