"""Every example runs, within its time, and draws a figure.

Only the quick ones are run by default, since the build of the documentation runs all of them:
`SPARSEBAYES_ALL_EXAMPLES=1 pytest tests/test_examples.py` runs all of them too.
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
SECONDS = 10
"""Processor time that an example may take, on a slow core."""
QUICK = {"evidence_paths", "far_variance", "which_features"}
"""Examples that every run of the tests runs; they take less than a second each beside the imports."""

MEASURE = """
import runpy, sys, time, warnings
import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning
warnings.simplefilter("error", ConvergenceWarning)
runpy.run_path(sys.argv[1], run_name="__main__")
print("figures:", len(plt.get_fignums()))
print("seconds:", time.process_time())
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_within_its_time_and_draws(path, tmp_path):
    if path.stem not in QUICK and not os.environ.get("SPARSEBAYES_ALL_EXAMPLES"):
        pytest.skip("run by the build of the documentation, and with SPARSEBAYES_ALL_EXAMPLES=1")
    skip_without_packages(path.read_text(encoding="utf-8"))
    environment = os.environ | {"MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", MEASURE, str(path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"^(figures|seconds): (\S+)$", done.stdout, flags=re.MULTILINE))
    assert int(found["figures"]) >= 1
    assert float(found["seconds"]) <= SECONDS
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
