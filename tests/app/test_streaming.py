"""The command line on Parquet files that are too large for the memory, as far as it knows."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from sparsebayes import load
from sparsebayes.app import streaming
from sparsebayes.app.cli import app

pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")


@pytest.fixture
def table(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 6))
    eta = 2 * X[:, 1] - X[:, 4]
    frame = pl.DataFrame(X, schema=[f"x{j}" for j in range(6)]).with_columns(
        y=pl.Series(eta + rng.standard_normal(4000)),
        label=pl.Series(np.where(eta + rng.logistic(size=4000) > 0, "yes", "no")),
        city=pl.lit("here"),
    )
    frame.write_parquet(tmp_path / "big.parquet", row_group_size=250)
    monkeypatch.setattr(streaming, "memory", lambda: 100_000)
    return tmp_path / "big.parquet"


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["fit", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def test_numbers(table, tmp_path):
    result = run(table, "--target", "y", "--exclude", "label", "--json", "-o", tmp_path / "model.skops")
    facts = json.loads(result.stdout)
    assert [each["name"] for each in facts["features"]] == ["x1", "x4"]
    assert facts["r2"] == pytest.approx(5 / 6, abs=0.05)
    assert "read block by block" in result.stderr
    assert "not numbers: city" in result.stderr
    assert load(tmp_path / "model.skops").feature_names_in_.tolist() == [f"x{j}" for j in range(6)]


def test_classes_and_folders(table, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for k in range(2):
        pl.read_parquet(table)[2000 * k : 2000 * (k + 1)].drop("y").write_parquet(
            folder / f"{k}.parquet", row_group_size=100
        )
    result = run(folder, "--target", "label")
    assert "2 of 6 features matter" in result.stdout
    assert "accuracy" in result.stdout


def test_a_sample_is_fitted_in_memory(table):
    result = run(table, "--target", "y", "--exclude", "label", "--sample", "150", "--no-baselines", "--model", "ard")
    assert "row groups of big.parquet were drawn at random" in result.stderr
    assert "150 of" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "y", "--report", "report.html"], "--report needs the rows in memory"),
        (["--target", "y", "--model", "rvm"], "--model rvm needs the rows in memory"),
        (["--target", "z"], "--target 'z' is no column"),
        ([], "name the column to predict"),
    ],
)
def test_what_passes_cannot_do_is_said(table, options, message):
    result = run(table, *options, code=3 if "z" in options else 2)
    assert message in result.stderr


def test_a_cluster(table):
    distributed = pytest.importorskip("distributed", reason="Dask's cluster is not installed")
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        result = run(table, "--target", "y", "--exclude", "label", "--dask", cluster.scheduler_address, "--json")
    assert [each["name"] for each in json.loads(result.stdout)["features"]] == ["x1", "x4"]
