"""Text from files does no harm where the command line shows or writes it."""

import json
import os
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from commands import here
from forging import MARK, rewritten
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, StabilitySelector, save
from sparsebayes.app.console import escape_warnings
from sparsebayes.app.predicting import without_formulas, write_table
from sparsebayes.io.printable import printable

ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e"
"""A new title, a clear screen, the same in one character, and text from right to left."""


def table(path, name="x", label="no"):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(60)
    frame = pl.DataFrame({name: x, "z": rng.standard_normal(60), "y": np.where(x > 0, "yes", label)})
    frame.write_csv(path)
    return path


def is_plain(text):
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.mark.parametrize("text", [ESCAPES, "\r", "\x00", "\x7f", "\udcff", "\u2028"])
def test_what_a_terminal_would_obey_is_escaped(text):
    assert printable(text).isprintable()
    assert printable(f"a{text}b", keep="\n") != f"a{text}b"
    assert printable("größe 色 ±\n", keep="\n") == "größe 色 ±\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows allows no such names")
@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", f"{ESCAPES}.csv"),
        ("fit", f"sqlite:///{ESCAPES}.db"),
        ("fit", "diabetes", "--target", ESCAPES),
        ("fit", "diabetes", "-o", f"{ESCAPES}/model"),
        ("predict", f"{ESCAPES}.skops", "diabetes"),
        ("inspect", f"{ESCAPES}.skops"),
    ],
)
def test_messages_hold_no_escapes(arguments):
    result = here(*arguments)
    assert result.exit_code in (2, 3)
    assert result.stderr.count("\n") == 1
    assert is_plain(result.stderr)


def test_unknown_options_hold_no_escapes(on_terminal):
    program = f"""
import os, sys
from sparsebayes.app.cli import run
results = os.fdopen(os.dup(1), "w")  # the program closes its own
sys.argv = ["sparsebayes", "fit", "a", {ESCAPES!r}]
try: run()
except SystemExit as end: print(end.code, file=results, flush=True)
"""
    seen, out = on_terminal(program)
    assert out.strip() == "2"
    assert "title" in seen
    assert is_plain(seen.replace("\r\n", "\n"))


SINGLE = ["--model", "slr", "--set", "average=false"]
"""A model that is fitted at once."""


def test_verdicts_hold_no_escapes(tmp_path):
    data = table(tmp_path / "t.csv", name=f"x{ESCAPES}", label=f"no{ESCAPES}")
    result = here("fit", data, "--target", "y", *SINGLE, "-o", tmp_path / "m.skops")
    assert result.exit_code == 0, result.output
    for shown in (
        result,
        here("inspect", tmp_path / "m.skops"),
        here("compare", data, "--target", "y", "--only", "vb"),
    ):
        assert shown.exit_code == 0, shown.output
        assert "title" in shown.output
        assert is_plain(shown.output)
    shown = here("fit", data, "--target", "y", *SINGLE, "--json")
    assert is_plain(shown.stdout)
    assert json.loads(shown.stdout)["classes"] == [f"no{ESCAPES}", "yes"]


def test_warnings_hold_no_escapes(monkeypatch):
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    escape_warnings()
    assert is_plain(warnings.formatwarning(ESCAPES, UserWarning, "file", 1))


def test_credible_sets_and_likely_features_hold_no_escapes(tmp_path, rng):
    """Two columns that are nearly the same: an averaged model names both in a sentence."""
    x = rng.standard_normal(60)
    columns = {f"a{ESCAPES}": x, f"b{ESCAPES}": x + 0.01 * rng.standard_normal(60), "y": x + rng.standard_normal(60)}
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv")
    result = here("fit", tmp_path / "t.csv", "--target", "y", "--model", "ard", "--cv", 2)
    assert result.exit_code == 0, result.output
    assert "One of these 2" in result.stdout
    assert is_plain(result.output)


# --- spreadsheets ---


FORMULAS = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_becomes_text(text):
    got = without_formulas(pl.DataFrame({text: [text, "a", None], "n": [-1.5, 2.0, 3.0]}))
    assert got.columns == [f"'{text}", "n"]
    assert got[f"'{text}"].to_list() == [f"'{text}", "a", None]
    assert got["n"].to_list() == [-1.5, 2.0, 3.0]


@pytest.mark.parametrize("text", ["-1", "+1", "-.5", "-1.5e-3", "+2.E5", "a=b", "x-1", "", "1=2"])
def test_numbers_and_other_text_stay(text):
    frame = pl.DataFrame({"label": [text]})
    assert without_formulas(frame)["label"].to_list() == [text]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["=a", "b"])])
def test_categories_are_text_too(kind):
    frame = pl.DataFrame({"label": pl.Series(["=a", "b"], dtype=kind)})
    assert without_formulas(frame)["label"].to_list() == ["'=a", "b"]


def test_predictions_hold_no_formulas_but_parquet_holds_what_the_label_is(tmp_path):
    data = table(tmp_path / "t.csv", label=FORMULAS[0])
    assert here("fit", data, "--target", "y", *SINGLE, "-o", tmp_path / "m.skops").exit_code == 0
    printed = here("predict", tmp_path / "m.skops", data, "--keep", "y").stdout
    assert f",{FORMULAS[0]}" not in printed
    assert f"'{FORMULAS[0]}" in printed
    for name in ("p.csv", "p.tsv", "p.parquet"):
        assert here("predict", tmp_path / "m.skops", data, "-o", tmp_path / name).exit_code == 0
    assert f"'{FORMULAS[0]}" in pl.read_csv(tmp_path / "p.csv")["prediction"].to_list()
    assert f"'{FORMULAS[0]}" in pl.read_csv(tmp_path / "p.tsv", separator="\t")["prediction"].to_list()
    assert FORMULAS[0] in pl.read_parquet(tmp_path / "p.parquet")["prediction"].to_list()


# --- files that cannot be written, or shown ---


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of a process's files")
@pytest.mark.parametrize("name", ["p.parquet", "p.feather", "p.csv"])
def test_a_full_disk_is_an_error_of_the_system(name, tmp_path):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    frame = pl.DataFrame({"x": np.random.default_rng(0).standard_normal(20_000)})
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_table(frame, str(tmp_path / name))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links are POSIX")
def test_a_link_to_itself_is_told_before_the_work(tmp_path):
    (tmp_path / "m.skops").symlink_to("m.skops")
    result = here("fit", "diabetes", "-o", tmp_path / "m.skops")
    assert result.exit_code == 2
    assert "leads to itself" in result.stderr
    assert (tmp_path / "m.skops").is_symlink()


@pytest.fixture
def frame(rng):
    X = pd.DataFrame(rng.standard_normal((40, 3)), columns=["a", "b", "c"])
    return X, X["a"] - X["b"] + 0.3 * rng.standard_normal(40)


FOREIGN = {
    "made of other columns": (
        make_pipeline(StandardScaler(), PCA(2), ARDRegressor(average=False)),
        "2 inputs made from 3 columns",
    ),
    "no model": (make_pipeline(StabilitySelector(ARDRegressor(average=False), n_resamples=2)), "is not one"),
}


@pytest.mark.parametrize("case", FOREIGN)
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_inspect_tells_in_a_line_what_it_cannot_show(case, more, frame, tmp_path):
    model, message = FOREIGN[case]
    save(model.fit(*frame), tmp_path / "m.skops")
    result = here("inspect", tmp_path / "m.skops", *more)
    assert result.exit_code == 3, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_inspect_of_a_file_of_skops_alone_is_a_line(frame, tmp_path):
    import skops.io

    skops.io.dump(make_pipeline(StandardScaler()).fit(*frame), tmp_path / "m.skops")
    result = here("inspect", tmp_path / "m.skops")
    assert result.exit_code == 3
    assert "not written by sparsebayes.save" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_pipeline_that_keeps_its_columns_is_shown(frame, tmp_path):
    save(make_pipeline(StandardScaler(), ARDRegressor(average=False)).fit(*frame), tmp_path / "m.skops")
    result = here("inspect", tmp_path / "m.skops")
    assert result.exit_code == 0, result.output
    assert "keeps 2 of 3" in result.stdout
    save(make_pipeline(StandardScaler(), ARDRegressor()).fit(*frame), tmp_path / "m.skops")
    assert (
        "It claims 2 of 3 features (inclusion probability at least 90 %)."
        in here("inspect", tmp_path / "m.skops").stdout
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("recipe", {"columns": [{"name": 1, "levels": []}], "impute": ""}),
        ("recipe", {"columns": 3}),
        ("n_rows", "many"),
        ("scores", [{"model": "ard"}]),
        ("scores", [3]),
        ("spread", ["x"]),
        ("spread", [1.0]),
        ("target", None),
    ],
)
def test_forged_notes_are_a_line(key, value, tmp_path):
    data = table(tmp_path / "t.csv")
    assert here("fit", data, "--target", "y", *SINGLE, "-o", tmp_path / "m.skops").exit_code == 0
    rewritten(tmp_path / "m.skops", lambda members: members[MARK]["metadata"]["command line"].update({key: value}))
    result = here("inspect", tmp_path / "m.skops")
    assert result.exit_code == 3, result.output
    assert "is damaged" in result.stderr
