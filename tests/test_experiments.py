"""Every reproduction runs by one command, and its numbers are what it says: few repetitions, small data."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
FOLDER = Path(__file__).parents[1] / "experiments"


def run(name, *options, **environment):
    """What a script prints."""
    command = [sys.executable, "-W", "ignore", str(FOLDER / f"{name}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def cells(output, *begins):
    """The cells of the first table row that begins like this."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in output.splitlines() if line[:1] == "|"]
    return next(row for row in rows if tuple(row[: len(begins)]) == begins)


def test_thesis_sinc_figures_and_explanation(tmp_path):
    output = run("thesis_chapter5", "--repeats", "2", "--only", "sinc", "--out", str(tmp_path))
    assert {"thesis_5_1.png", "thesis_5_2.png"} <= {path.name for path in tmp_path.iterdir()}
    assert cells(output, "sinc", "DRVM")[2:5] == ["0.017", "9.2", "1"]
    assert float(cells(output, "sinc", "RVM")[5].split()[0]) < 0.04
    assert "at the best width for each draw" in output
    without_noise = next(line for line in output.splitlines() if line.startswith("figure 5.1, DRVM"))
    assert float(without_noise.split("RMSE ")[1].split(",")[0]) < 1e-3  # the thesis: fits it perfectly


def test_thesis_features_and_absent_sets(tmp_path):
    options = ("--repeats", "1", "--only", "friedman1", "boston", "--out", str(tmp_path))
    output = run("thesis_chapter5", *options, SPARSEBAYES_DATA=str(tmp_path / "nowhere"))
    assert "boston: no boston.csv in the data folder, left out" in output
    assert (tmp_path / "thesis_5_3.png").exists()
    assert float(cells(output, "friedman1", "DRVM")[5].split()[0]) < 1.14  # the published error


def test_tipping_2001_and_absent_sets(tmp_path):
    options = ("--repeats", "2", "--only", "sinc, uniform noise", "usps")
    output = run("tipping_2001", *options, SPARSEBAYES_DATA=str(tmp_path))
    assert cells(output, "sinc, uniform noise")[1:4] == ["0.0187", "7.0", "0.0215"]
    assert "usps: no usps.csv in the data folder, left out" in output


def test_tipping_faul_2003(tmp_path):
    output = run("tipping_faul_2003", "--rows", "40", "80", "--repeats", "1", "--out", str(tmp_path))
    assert "Ripley, 80 rows: all at once takes" in output
    assert "sinc: time grows as rows to the power" in output
    assert (tmp_path / "tipping_faul_2003.png").exists()


def test_slr_toolbox_keeps_what_the_toolbox_keeps(tmp_path):
    output = run(
        "slr_toolbox", "--problems", "log_n200_d10", "--features", "20", "--repeats", "1", "--out", str(tmp_path)
    )
    for algorithm in ("SLR-LAP", "SLR-VAR", "RLR-LAP", "RLR-VAR", "L1-SLR-LAP", "L1-SLR-c"):
        theirs, ours, both, *_ = cells(output, "log_n200_d10", algorithm)[2:]
        assert theirs == ours == both
        assert cells(output, algorithm)[2] == "5.0"  # all true features of the toy data
    assert (tmp_path / "slr_toolbox.png").exists()


def test_vb_logistic_bounds_agree_three_ways(tmp_path):
    output = run("vb_logistic", "--problems", "log_n200_d10", "--iterations", "100", "--out", str(tmp_path))
    for prior in ("one precision", "a precision for each weight"):
        program, _, note, ours, _, difference, falls = cells(output, "log_n200_d10", prior)[2:]
        assert float(ours) == pytest.approx(float(program), abs=1e-5)
        assert float(note.split()[0]) == pytest.approx(float(program), abs=1e-3)  # after 100 iterations
        assert float(difference) < 1e-4
        assert falls == "no"
    assert float(cells(output, "log_n200_d10", "200")[2]) < 1e-3  # row by row


def test_wipf_nagarajan_2008_recovers_few_weights(tmp_path):
    output = run("wipf_nagarajan_2008", "--numbers", "5", "--repeats", "1", "--out", str(tmp_path))
    for solver in ("reweighted-l1", "em", "fixed-point", "sequential"):
        assert cells(output, "normal", "5", solver)[3] == "100%"
    assert (tmp_path / "wipf_nagarajan_2008.png").exists()


def test_best_subset_or_lasso(tmp_path, monkeypatch):
    pytest.importorskip("abess")
    options = ("--settings", "low", "--kinds", "2", "--repeats", "1", "--out", str(tmp_path))
    output = run("best_subset_or_lasso", *options)
    assert float(cells(output, "low", "2", "6.0")[3].split()[0]) < 1.2  # error over the noise variance
    assert "low: relaxed lasso against the better of lasso and best subset" in output
    monkeypatch.syspath_prepend(FOLDER)
    import best_subset_or_lasso as simulation

    (train, validation), w = simulation.draw(simulation.SETTINGS["low"], 2, 6.0, 0)
    assert w @ simulation.covariance(10) @ w == pytest.approx(6.0)
    assert simulation.judged(w, np.arange(5), w, 10) == (1.0, 5, 1.0)
    assert len(train[1]) == len(validation[1]) == 100
