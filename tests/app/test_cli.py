"""The command line as its users have it: a process of its own, real files, exit codes."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import typer
from commands import ENVIRONMENT, command, here
from packages import skip_without_names
from typer.main import get_command

import sparsebayes
from sparsebayes.app import exit_codes
from sparsebayes.app.cli import app
from sparsebayes.app.columns import Recipe

TARGET, SIZE, COLOUR = "出力", "größe [cm]", "色"
ROOT = Path(__file__).parents[2]
COMMANDS = ("fit", "predict", "compare", "inspect", "export", "datasets")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals, limits and devices are POSIX")


def patients(n=80, seed=0):
    """Names in several scripts, a category, a truth value, groups, and a target that depends on two columns."""
    rng = np.random.default_rng(seed)
    size, colour = rng.standard_normal(n), rng.choice(["red", "grün", "blue"], n)
    return pl.DataFrame(
        {
            "subject": np.arange(n) // 4,
            SIZE: size,
            COLOUR: colour,
            "flag": rng.choice([True, False], n),
            TARGET: 2 * size + 3 * (colour == "red") + 0.3 * rng.standard_normal(n),
        }
    )


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The files of one fit, and what it printed."""
    folder = tmp_path_factory.mktemp("fit")
    patients().write_csv(folder / "patients.csv")
    options = ["--target", TARGET, "--group", "subject", "--json", "-o", "model.skops", "--report", "report.html"]
    result = command("fit", "patients.csv", *options, cwd=folder)
    assert result.returncode == 0, result.stderr
    return folder, result


def test_fit_writes_a_model_and_a_report_and_only_json_on_standard_output(fitted):
    folder, result = fitted
    said = json.loads(result.stdout)
    assert {path.name for path in folder.iterdir()} == {"patients.csv", "model.skops", "report.html"}
    assert (said["model"], said["task"], said["n_rows"], said["n_features"]) == ("ard", "regression", 80, 5)
    assert [line["feature"] for line in said["kept"]] == [SIZE, f"{COLOUR}=red"]
    assert said["scores"][0]["error"] == pytest.approx(0.3, abs=0.1)  # the noise, of which 80 rows tell the size to 8 %
    assert f"Task: regression of '{TARGET}'" in result.stderr
    assert "\r" not in result.stderr
    assert "\x1b" not in result.stderr  # no bars where no terminal is
    assert TARGET in (folder / "report.html").read_text(encoding="utf-8")


def test_json_and_report_agree_on_the_coverage_of_intervals(tmp_path):
    """Of 100 rows some lie between the normal and Student's quantile."""
    result = here("fit", "sinc", "-m", "rvm", "--cv", 3, "--report", tmp_path / "report.html", "--json")
    found = json.loads(result.stdout)["coverage"]["found"]
    shown = re.search(r"<strong>(\d+)\s%</strong> of [\w-]+ rows lie in", (tmp_path / "report.html").read_text("utf-8"))
    assert float(shown[1]) == pytest.approx(100 * found)  # a whole number of percent: there are 100 rows


def test_predict_gives_what_the_model_gives(fitted):
    folder, _ = fitted
    new = patients(30, seed=1)
    shuffled = new.select([TARGET, "flag", COLOUR, SIZE]).with_columns(pl.lit("ignored").alias("more"))
    shuffled.write_parquet(folder / "new.parquet")
    arguments = ["predict", "model.skops", "new.parquet", "--interval", "0.9", "--keep", TARGET]
    assert command(*arguments, "-o", "out.parquet", cwd=folder).returncode == 0
    found = pl.read_parquet(folder / "out.parquet")
    assert found.columns == [TARGET, "prediction", "std", "lower", "upper"]
    training = patients()
    recipe = Recipe.of(training, [SIZE, COLOUR, "flag"], "")
    model = sparsebayes.ARDRegressor().fit(recipe.encode(training), training[TARGET].to_numpy())
    mean, std = model.predict(recipe.encode(new), return_std=True)
    np.testing.assert_allclose(found["prediction"], mean, rtol=1e-10)
    np.testing.assert_allclose(found["std"], std, rtol=1e-10)
    ends = model.predict_interval(recipe.encode(new), coverage=0.9)
    np.testing.assert_allclose(found[["lower", "upper"]].to_numpy(), ends, rtol=1e-10)
    arguments[1:3] = folder / "model.skops", folder / "new.parquet"
    printed = here(*arguments)
    np.testing.assert_allclose(pl.read_csv(io.StringIO(printed.stdout)).to_numpy(), found.to_numpy(), rtol=1e-12)
    assert printed.stderr == ""


def test_predict_names_the_columns_that_are_missing(fitted):
    folder, _ = fitted
    patients().drop(SIZE).write_csv(folder / "lacking.csv")
    result = here("predict", folder / "model.skops", folder / "lacking.csv")
    assert result.exit_code == 3
    assert f"lacks '{SIZE}', which the model needs" in result.stderr


def test_inspect_shows_what_was_kept(fitted):
    folder, result = fitted
    shown = command("inspect", folder / "model.skops")
    assert shown.returncode == 0
    for text in ("ARDRegressor", f"{COLOUR}=red", "It claims 2 of 5 features", "converged", "patients.csv"):
        assert text in shown.stdout
    said, before = json.loads(here("inspect", folder / "model.skops", "--json").stdout), json.loads(result.stdout)
    assert before["averaged"] is True
    for key in ("kept", "averaged", "likely", "credible_sets", "n_features_posterior", "n_flips"):
        assert said[key] == before[key]


def test_export_writes_a_graph_of_the_encoded_columns(fitted):
    onnxruntime = pytest.importorskip("onnxruntime")
    folder, _ = fitted
    result = command("export", folder / "model.skops", folder / "model.onnx")
    assert result.returncode == 0, result.stderr
    recipe = Recipe.of(patients(), [SIZE, COLOUR, "flag"], "")
    assert result.stdout.splitlines() == recipe.features
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    X = recipe.encode(patients(20, seed=2))
    (mean,) = session.run(["mean"], {"X": X})
    model = sparsebayes.load(folder / "model.skops")
    np.testing.assert_allclose(mean, model.predict(pl.DataFrame(X, schema=recipe.features)), rtol=1e-9)


def test_a_model_saved_from_python_predicts_by_the_names_of_its_columns(tmp_path):
    frame = patients().select(SIZE, "subject")
    skip_without_names(frame)
    y = patients()[TARGET].to_numpy()
    sparsebayes.save(sparsebayes.RVMRegressor().fit(frame, y), tmp_path / "named.skops")
    sparsebayes.save(sparsebayes.ARDRegressor().fit(frame.to_numpy(), y), tmp_path / "nameless.skops")
    patients().write_csv(tmp_path / "new.csv")
    result = here("predict", tmp_path / "named.skops", tmp_path / "new.csv")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 81
    assert here("inspect", tmp_path / "named.skops").exit_code == 0
    result = here("predict", tmp_path / "nameless.skops", tmp_path / "new.csv")
    assert result.exit_code == 3
    assert "does not say what its columns are called" in result.stderr


def test_classes_from_a_wide_table(tmp_path):
    """62 rows, 400 features: what a small study of genes looks like."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((62, 400))
    label = np.where(X[:, 3] - X[:, 10] + 0.3 * rng.standard_normal(62) > 0, "tumour", "normal")
    frame = pl.DataFrame({f"gene {j}": X[:, j] for j in range(400)} | {"class": label})
    frame.write_csv(tmp_path / "wide.csv")
    one = ["--model", "slr", "--set", "average=false"]
    result = command("fit", "wide.csv", "-t", "class", "-f", "gene*", "--cv", 3, *one, "-o", "m.skops", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "2 classes of 'class'" in result.stderr
    assert "gene 3 " in result.stdout
    assert "gene 10 " in result.stdout
    predicted = pl.read_csv(io.StringIO(here("predict", tmp_path / "m.skops", tmp_path / "wide.csv").stdout))
    assert predicted.columns == ["prediction", "probability=normal", "probability=tumour"]
    assert (predicted["prediction"] == frame["class"]).mean() > 0.9
    np.testing.assert_allclose(predicted[:, 1] + predicted[:, 2], 1)


@POSIX
def test_a_million_rows_take_seconds_and_little_memory(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 5))
    columns = {f"x{j}": X[:, j] for j in range(5)} | {"kind": rng.choice(["a", "b", "c"], len(X))}
    columns["y"] = X[:, 0] - 2 * X[:, 1] + (columns["kind"] == "a") + rng.standard_normal(len(X))
    pl.DataFrame(columns).write_parquet(tmp_path / "big.parquet")
    arguments = [sys.executable, "-m", "sparsebayes", "fit", "big.parquet", "-t", "y", "--cv", "2", "--json"]
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(arguments, cwd=tmp_path, stdout=out, env=ENVIRONMENT)
        _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    said = json.loads((tmp_path / "out").read_text())
    assert {line["feature"] for line in said["kept"]} == {"x0", "x1", "kind=a"}
    assert said["coverage"]["found"] == pytest.approx(0.9, abs=0.002)  # six standard errors of a million rows
    # The matrix has 64 MB; a handful of copies, and the packages with 200 MB.
    assert usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) < 1.2e9


def test_compare_ranks_ours_and_plain_ones(tmp_path):
    patients().write_csv(tmp_path / "patients.csv")
    arguments = ["compare", "patients.csv", "-t", TARGET, "-x", "subject", "--cv", 3, "-o", "table.csv", "--json"]
    only = [part for name in ("ard", "rvm", "lasso", "gp", "mean") for part in ("--only", name)]
    result = command(*arguments, *only, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    scores = json.loads(result.stdout)["scores"]
    assert [line["error"] for line in scores] == sorted(line["error"] for line in scores)
    assert scores[-1]["model"] == "mean"
    assert scores[-1]["difference"] > 3 * scores[-1]["difference_se"]
    assert pl.read_csv(tmp_path / "table.csv")["model"].to_list() == [line["model"] for line in scores]


def test_compare_prints_a_table_with_every_model():
    result = here("compare", "iris", "--cv", 2, "--only", "slr", "--only", "l1", "--only", "majority")
    assert result.exit_code == 0
    for text in ("slr", "l1", "majority", "log score", "66.7 ± 0.0 %"):
        assert text in result.stdout


def test_help_teaches_by_example_and_comes_at_once():
    for name in COMMANDS:
        assert f"  sparsebayes {name}" in here(name, "--help").stdout
    program = "import sys, sparsebayes.app.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=ENVIRONMENT).stdout
    assert not {b"numpy", b"sklearn", b"polars", b"scipy", b"matplotlib"} & set(loaded.split())


def documented_commands():
    """Every example in the help and in the documents."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))]
    texts += [here(name, "--help").stdout for name in COMMANDS]
    return sorted({line for text in texts for line in re.findall(r"^ *(sparsebayes [a-z]+ .+)$", text, re.MULTILINE)})


def test_every_documented_command_is_one():
    """Parsed, not run: an option that has gone, or an argument too many, is found."""
    group = get_command(app)
    examples = documented_commands()
    assert len(examples) > 15
    for example in examples:
        _, name, *arguments = shlex.split(example)
        group.commands[name].make_context(name, arguments)


def test_datasets_are_listed():
    assert "breast-cancer" in here("datasets").stdout
    assert json.loads(here("datasets", "--json").stdout)["iris"]["task"] == "multiclass"


# --- what goes wrong ---


def test_a_search_that_is_cut_short_writes_its_result_and_says_so(tmp_path):
    patients().write_csv(tmp_path / "patients.csv")
    one = ["--set", "average=false", "--set", "max_iter=1"]
    result = command(
        "fit", "patients.csv", "-t", TARGET, "-m", "ard", "--cv", 2, *one, "-o", "model.skops", cwd=tmp_path
    )
    assert result.returncode == 4
    assert "max_iter" in result.stderr
    assert "NOT CONVERGED" in result.stdout
    assert not sparsebayes.load(tmp_path / "model.skops")[-1].converged_


def test_chains_that_do_not_agree_are_said():
    """With two flips the standard error of an inclusion probability is 0.18."""
    result = here("fit", "diabetes", "--model", "ard", "--cv", 2, "--set", "max_flips=2")
    assert result.exit_code == 4, result.output
    assert "The chains DO NOT AGREE after 2 flips of each" in result.stdout
    assert "--set max_flips" in result.stdout
    assert "NOT CONVERGED" not in result.stdout


@pytest.fixture
def folder(tmp_path):
    """Tables with something wrong each."""
    (tmp_path / "empty.csv").touch()
    (tmp_path / "hole.csv").write_text("x,y\n1,1.5\n,2.5\n3,3.5\n4,4.5\n5,5.5\n")
    (tmp_path / "text.skops").write_text("this is no model")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "nowhere.csv", "-t", "y"], 3, "neither a file nor a built-in data set"),
        (["fit", "diabets"], 3, "did you mean 'diabetes'"),
        (["fit", "{folder}", "-t", "y"], 3, "is a folder"),
        (["fit", "{folder}/empty.csv", "-t", "y"], 3, "is empty"),
        (["fit", "{folder}/hole.csv"], 3, "choose the column to predict with --target"),
        (["fit", "{folder}/hole.csv", "-t", "z"], 3, "--target 'z' is not a column"),
        (["fit", "{folder}/hole.csv", "-t", "y"], 3, "column 'x' has a missing value in row 2"),
        (["fit", "sinc", "--group", "subject"], 3, "--group 'subject' matches no column"),
        (["fit", "sinc", "--model", "slr"], 2, "model slr is for classification, but the target is numeric"),
        (["fit", "sinc", "--model", "forest"], 2, "choose auto, ard"),
        (["fit", "sinc", "--task", "guess"], 2, "choose auto, regression, classification"),
        (["fit", "sinc", "--set", "tol=0", "--model", "ard"], 2, "The 'tol' parameter"),
        (["fit", "sinc", "--set", "tol=1"], 2, "choose one with --model"),
        (["fit", "sinc", "-o", "{folder}/nowhere/model.skops"], 2, "does not exist"),
        (["fit", "sinc", "-o", "{folder}/empty.csv/model.skops"], 2, "does not exist"),
        (["fit", "sinc", "-o", "{folder}"], 2, "is not a regular file"),
        (["fit", "sinc", "--report", "report.pdf"], 2, "must end in .html"),
        (["compare", "sinc", "--only", "slr"], 2, "is not a model for this task; choose from ard"),
        (["predict", "{folder}/nowhere.skops", "sinc"], 3, "no such file"),
        (["predict", "{folder}/text.skops", "sinc"], 3, "is not a model file"),
        (["predict", "{folder}/text.skops", "sinc", "--interval", "90"], 2, "between 0 and 1"),
        (["predict", "{folder}/text.skops", "sinc", "-o", "out.xlsx"], 2, "must end in .csv"),
        (["inspect", "{folder}"], 3, "is a folder"),
        (["export", "{folder}/text.skops", "{folder}/m.pmml"], 2, "must end in .onnx"),
        (["fit"], 2, "DATA"),
        (["fit", "sinc", "--colour"], 2, "--colour"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_one_line_says_what_is_wrong(arguments, code, message, folder):
    before = sorted(path.name for path in folder.iterdir())
    result = here(*(argument.format(folder=folder) for argument in arguments))
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""
    assert sorted(path.name for path in folder.iterdir()) == before


@POSIX
def test_devices_and_a_full_disk_leave_nothing_behind(tmp_path):
    """The shell lets the process write no more than some 10,000 bytes to a file, as if the disk were full then."""
    if os.path.exists("/proc/self"):
        assert here("fit", "sinc", "-o", "/proc/model.skops").exit_code == 2
    assert here("fit", "sinc", "-o", "/dev/null").exit_code == 2
    line = f"ulimit -f 20; exec {shlex.quote(sys.executable)} -m sparsebayes fit sinc -m ard --cv 2 -o model.skops"
    result = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, env=ENVIRONMENT, timeout=300
    )
    assert result.returncode == 1
    assert "File too large" in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_standard_output_that_is_full_is_told():
    with open("/dev/full", "w") as full:
        result = command("datasets", stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert result.returncode == 1
    assert result.stderr.strip().endswith("No space left on device")


def test_what_libraries_print_is_kept_out_of_the_results():
    """BLAS, for one, complains on standard output."""
    program = "import os; from sparsebayes.app.exit_codes import reserve_stdout; reserve_stdout(); print('result'); "
    program += "os.write(1, b'noise')"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=ENVIRONMENT)
    assert result.stdout.split() == [b"result"]
    assert result.stderr == b"noise"


@POSIX
def test_ctrl_c_leaves_no_file(tmp_path):
    # Where the tests themselves run without Ctrl-C, the process must be told to listen to it.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program += "from sparsebayes.__main__ import main; main()"
    arguments = [sys.executable, "-c", program, "compare", "digits", "-o", "table.csv"]
    process = subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert "Task" in process.stderr.readline()  # the data are read, minutes of work begin
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    assert process.returncode == 130
    assert rest.strip() == "sparsebayes: interrupted; no incomplete file was left behind"
    assert not list(tmp_path.iterdir())


def test_ctrl_c_that_an_import_turns_into_something_else(monkeypatch, capsys):
    monkeypatch.setattr(exit_codes, "CTRL_C", threading.Event())

    @exit_codes.with_exit_codes
    def broken(pressed):
        if pressed:
            exit_codes.CTRL_C.set()
        raise ValueError("numpy.dtype size changed")

    with pytest.raises(ValueError, match="size changed"):
        broken(False)
    with pytest.raises(typer.Exit) as end:
        broken(True)
    assert end.value.exit_code == 130
    assert "interrupted" in capsys.readouterr().err


AT_ONCE = (
    "from sparsebayes.estimators import _progress as p; p.DELAY, p.PERIOD = 0, 1e-3; "
    "from sparsebayes.__main__ import main; main()"
)


@POSIX
def test_a_terminal_sees_how_far_the_work_is(on_terminal):
    seen, out = on_terminal(AT_ONCE, "fit", "sinc", "-m", "rvm")
    assert "1 of 5" in seen
    # The fit to all rows has a line within the line of the command, which rich draws from version 15 on.
    assert "RVMRegressor" in seen or int(version("rich").partition(".")[0]) < 15
    assert seen.endswith("\x1b[2K")  # of which nothing is left in the end
    assert "\x1b" not in out


@POSIX
@pytest.mark.parametrize("what", ["fit", "compare"])
def test_a_terminal_sees_nothing_of_it_with_json(on_terminal, what):
    seen, out = on_terminal(AT_ONCE, what, "sinc", *["-m", "rvm"][: 2 * (what == "fit")], "--json")
    assert "\x1b" not in seen
    assert json.loads(out)["source"] == "sinc"
