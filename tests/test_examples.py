"""Quick examples run and draw a figure, and all of them are pages of the gallery.

The build of the documentation runs all of them, with the same checks and a limit of their time
(docs/_ext/example_checks.py).
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packages import skip_without_packages

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
QUICK = [path for path in EXAMPLES if path.stem in {"evidence_paths", "far_variance", "which_features"}]
"""They take less than a second each beside the imports."""

MEASURE = """
import runpy, sys, warnings
import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning
warnings.simplefilter("error", ConvergenceWarning)
runpy.run_path(sys.argv[1], run_name="__main__")
print("figures:", len(plt.get_fignums()))
"""


@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.stem)
def test_a_quick_example_runs_and_draws(path, tmp_path):
    skip_without_packages(path.read_text(encoding="utf-8"))
    environment = os.environ | {"MPLBACKEND": "Agg"}
    command = [sys.executable, "-c", MEASURE, str(path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(re.search(r"^figures: (\d+)$", done.stdout, flags=re.MULTILINE)[1]) >= 1
    assert not list(tmp_path.iterdir())  # an example leaves no file behind


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_page_of_the_gallery(path):
    """A title in reStructuredText, and three to nine blocks, each with its words."""
    source = path.read_text(encoding="utf-8")
    title, rule = ast.get_docstring(ast.parse(source)).splitlines()[:2]
    assert rule == "=" * len(title)
    blocks = re.findall(r"^# %%\n(#? ?.*)$", source, flags=re.MULTILINE)
    assert 2 <= len(blocks) <= 9
    assert all(re.match(r"# \S", first) for first in blocks)
    assert source.endswith("plt.show()\n")
