"""Tables as people have them, through the command line."""

import bz2
import datetime
import gzip
import io
import json
import lzma
import subprocess
import sys
import zipfile

import numpy as np
import polars as pl
import pytest
from commands import ENVIRONMENT, here

from sparsebayes.app import excel
from sparsebayes.app.cells import cleaned
from sparsebayes.app.errors import DataError
from sparsebayes.app.tables import open_table
from sparsebayes.app.unpacking import decoded

ONE = ["-m", "ard", "--cv", 2, "--set", "average=false", "--json"]
"""The fastest fit: which numbers arrive is the question here."""


def people(n=40):
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(20, 80, n).round(1), rng.uniform(0, 9, n).round(2)
    return pl.DataFrame({"age": age, "dose": dose, "pain": (2 * dose - 0.1 * age + rng.normal(0, 0.3, n)).round(2)})


def with_commas(frame):
    return frame.write_csv(separator=";").replace(".", ",")


def zipped(name, text):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(name, text)
        archive.writestr("__MACOSX/" + name, b"what a Mac adds")
    return made.getvalue()


def workbook(frame, sheets=("data",)):
    openpyxl = pytest.importorskip("openpyxl")
    book, made = openpyxl.Workbook(), io.BytesIO()
    book.active.title = sheets[0]
    for row in [frame.columns, *frame.rows()]:
        book.active.append(row)
    for name in sheets[1:]:
        book.create_sheet(name)
    book.save(made)
    return made.getvalue()


def zstd():
    made = io.BytesIO()
    people().write_csv(made, compression="zstd", check_extension=False)
    return made.getvalue()


CSV = people().write_csv()
ZOO = {
    "a.csv": lambda: CSV.encode(),
    "commas.csv": lambda: with_commas(people()).encode(),
    "declared.csv": lambda: b"sep=;\r\n" + with_commas(people()).encode(),
    "tabs.txt": lambda: people().write_csv(separator="\t").replace(".", ",").encode(),
    "bars.txt": lambda: people().write_csv(separator="|").encode(),
    "utf16.csv": lambda: CSV.encode("utf-16"),
    "utf16-big.csv": lambda: b"\xfe\xff" + CSV.encode("utf-16-be"),
    "utf16-bare.csv": lambda: CSV.encode("utf-16-le"),
    "a.csv.gz": lambda: gzip.compress(CSV.encode()),
    "a.csv.bz2": lambda: bz2.compress(CSV.encode()),
    "a.csv.xz": lambda: lzma.compress(CSV.encode()),
    "a.csv.zst": zstd,
    "a.tsv.gz": lambda: gzip.compress(people().write_csv(separator="\t").encode()),
    "a.zip": lambda: zipped("inside.csv", CSV),
    "a.jsonl": lambda: people().write_ndjson().encode(),
    "a.ndjson.gz": lambda: gzip.compress(people().write_ndjson().encode()),
    "a.json": lambda: people().write_json().encode(),
    "a.xlsx": lambda: workbook(people()),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "a.csv"
    path.write_text(CSV)
    return json.loads(here("fit", path, "-t", "pain", *ONE).stdout)["kept"]


@pytest.mark.parametrize("name", ZOO)
def test_every_file_gives_the_same_model(name, tmp_path, plain):
    path = tmp_path / name
    path.write_bytes(ZOO[name]())
    result = here("fit", path, "-t", "pain", *ONE)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["kept"] == plain
    assert ("read as the decimal sign" in result.stderr) == (name in ("commas.csv", "declared.csv", "tabs.txt"))


@pytest.mark.parametrize("name", ["a.csv", "commas.csv", "a.jsonl", "a.csv.gz", "a.zip", "a.xlsx", "utf16.csv"])
def test_standard_input_is_recognised_by_its_first_bytes(name, plain):
    result = here("fit", "-", "-t", "pain", *ONE, input=ZOO[name]())
    assert result.exit_code == 0, result.stderr
    said = json.loads(result.stdout)
    assert said["source"] == "standard input"
    assert said["kept"] == plain


def test_an_empty_standard_input_is_said():
    arguments = [sys.executable, "-m", "sparsebayes", "fit", "-", "-t", "pain"]
    result = subprocess.run(arguments, input=b"", capture_output=True, env=ENVIRONMENT, timeout=300)
    assert (result.returncode, result.stderr.strip()) == (3, b"sparsebayes: standard input is empty")


# --- cells ---


def fit_text(tmp_path, text, *options, name="a.csv"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return here("fit", tmp_path / name, "-t", "pain", *ONE, *options)


def spoilt(row, column, cell):
    """The table with another text in one cell; rows count from 1."""
    lines = CSV.splitlines()
    cells = lines[row].split(",")
    cells[people().columns.index(column)] = cell
    lines[row] = ",".join(cells)
    return "\n".join(lines) + "\n"


def test_one_bad_cell_among_numbers_is_named_with_its_row(tmp_path):
    result = fit_text(tmp_path, spoilt(27, "age", "about 27"))
    assert result.exit_code == 3
    assert "column 'age' has numbers in 39 rows, but 'about 27' in row 27: correct the table" in result.stderr
    result = fit_text(tmp_path, spoilt(27, "pain", "strong"))
    assert "column 'pain' has numbers in 39 rows, but 'strong' in row 27" in result.stderr


def test_a_bad_cell_among_decimal_commas_is_named(tmp_path):
    text = with_commas(people()).splitlines()
    text[5] = "12,5;1,2;much"
    result = fit_text(tmp_path, "\n".join(text))
    assert "column 'pain' has numbers in 39 rows, but 'much' in row 5" in result.stderr


def test_bad_cells_of_new_rows_are_named(tmp_path):
    model = tmp_path / "m.skops"
    assert fit_text(tmp_path, CSV, "-o", model).exit_code == 0
    for text in (spoilt(27, "age", "about 27"), "age,dose\nabout 27,1\n3,2\n"):
        (tmp_path / "new.csv").write_text(text)
        result = here("predict", model, tmp_path / "new.csv")
        assert result.exit_code == 3
        assert "'about 27' in row" in result.stderr


def test_marks_of_missing_values_are_offered_and_taken(tmp_path):
    result = fit_text(tmp_path, spoilt(7, "dose", "-"))
    assert result.exit_code == 3
    assert "'-' in row 7: if '-' means a missing value, use --missing '-'" in result.stderr
    result = fit_text(tmp_path, spoilt(7, "dose", "-"), "--missing", "-")
    assert "column 'dose' has a missing value in row 7: use --impute median" in result.stderr
    result = fit_text(tmp_path, spoilt(7, "dose", "-"), "--missing", "-", "--impute", "median")
    assert result.exit_code == 0, result.stderr
    result = fit_text(tmp_path, spoilt(7, "dose", "?"))
    assert "column 'dose' has a missing value in row 7" in result.stderr


def test_the_same_word_in_several_cells_is_offered_as_missing():
    frame = pl.DataFrame({"x": [*map(str, range(30)), "gone", "gone"]})
    with pytest.raises(DataError, match="'gone' in row 31, 'gone' in row 32: if 'gone' means a missing value"):
        cleaned(frame)


def test_all_columns_with_missing_values_are_named_at_once(tmp_path):
    lines = spoilt(7, "dose", "").splitlines()
    lines[3] = "," + lines[3].partition(",")[2]
    result = fit_text(tmp_path, "\n".join(lines))
    assert result.exit_code == 3
    told = "2 columns have missing values: 'age' (1, first in row 3), 'dose' (1, first in row 7). Use --impute median"
    assert told in result.stderr


def test_categories_with_a_few_numbers_stay_categories():
    frame = pl.DataFrame({"children": ["0", "1", "2", "3+"] * 5, "name": ["Ann", "Bob"] * 10})
    assert cleaned(frame)[0].equals(frame)


@pytest.mark.parametrize(
    ("cells", "separator", "numbers", "note"),
    [
        (["1,5", "2", "1.234,5", "-,5"], ";", [1.5, 2, 1234.5, -0.5], "decimal sign"),
        (["1,234", "2,345"], ";", [1.234, 2.345], "decimal sign"),
        (["1,234", "2,345"], ",", [1234, 2345], "separator of thousands"),
        (["0,234", "2,345"], ",", [0.234, 2.345], "decimal sign"),
        (["1,234.5", "12"], ";", [1234.5, 12], "separator of thousands"),
        (["1,234,567", "12"], "", [1234567, 12], "separator of thousands"),
        ([" 1.5 ", "+2", "1e3", "NA"], ",", [1.5, 2, 1000, None], ""),
    ],
)
def test_commas_in_numbers(cells, separator, numbers, note):
    frame, notes = cleaned(pl.DataFrame({"x": cells}), separator=separator)
    assert frame["x"].to_list() == numbers
    assert (note in notes[0]) if note else not notes


def test_points_that_may_separate_thousands_are_said():
    frame = pl.DataFrame({"x": ["1,5", "2,5"], "people": [1.234, 5.678], "rate": [0.5, 1.234]})
    notes = cleaned(frame, separator=";")[1]
    assert notes[1] == "The point in 'people' is read as the decimal sign; remove it if it separates thousands"


# --- columns ---


def crowded():
    n, frame = 40, people()
    start = datetime.date(2024, 1, 1)
    return frame.with_columns(
        pl.Series("", np.arange(n)),
        pl.Series("patient_id", np.random.default_rng(1).permutation(n) + 1000),
        pl.Series("visit", [f"{start + datetime.timedelta(k):%d.%m.%Y}" for k in range(n)]),
        pl.Series("day", [start + datetime.timedelta(k) for k in range(n)]),
        pl.Series("clinic", ["north", "south"] * (n // 2)),
        pl.lit(None).alias("empty"),
    )


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.xlsx"])
def test_columns_that_are_no_features_are_left_out_and_said(name, tmp_path):
    path = tmp_path / name
    frame = crowded()
    path.write_bytes(workbook(frame)) if name == "a.xlsx" else getattr(frame, f"write_{name[2:]}")(path)
    result = here("fit", path, "-t", "pain", *ONE)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["n_features"] == 3
    assert "'' left out: it counts the rows (0, 1, 2, …)" in result.stderr
    assert "'patient_id' left out: it has a different whole number in each row" in result.stderr
    assert "'visit'" in result.stderr
    assert "'day'" in result.stderr
    assert "dates" in result.stderr
    assert name == "a.xlsx" or "'empty' left out: it has no values" in result.stderr


def test_a_column_that_is_asked_for_by_name_is_used(tmp_path):
    crowded().write_csv(tmp_path / "a.csv")
    result = here("fit", tmp_path / "a.csv", "-t", "pain", "-f", "patient_id", "-f", "age", *ONE)
    assert json.loads(result.stdout)["n_features"] == 2


def test_texts_that_all_differ_are_left_out(tmp_path):
    people(80).with_columns(pl.Series("name", [f"Mr {k}" for k in range(80)])).write_csv(tmp_path / "a.csv")
    result = here("fit", tmp_path / "a.csv", "-t", "pain", *ONE)
    assert "'name' left out: it has 80 different texts" in result.stderr
    assert result.exit_code == 0


def test_two_columns_of_one_name_are_said(tmp_path):
    text = CSV.replace("age,dose,pain", "dose,dose,pain")
    result = fit_text(tmp_path, text)
    assert result.exit_code == 0
    assert "Several columns have the name 'dose'; all but the first are called 'dose_duplicated_0'" in result.stderr
    assert {line["feature"] for line in json.loads(result.stdout)["kept"]} == {"dose", "dose_duplicated_0"}


@pytest.mark.parametrize("copy", ["pain", "pain * 2 + 1", "pain ** 3"])
def test_a_copy_of_the_target_is_named(tmp_path, copy):
    frame = people().with_columns(pl.sql_expr(copy.replace("** 3", "* pain * pain")).alias("outcome code"))
    frame.write_csv(tmp_path / "a.csv")
    result = here("fit", tmp_path / "a.csv", "-t", "pain", *ONE)
    told = "the feature 'outcome code' determines the target 'pain' exactly"
    assert f"warning: {told}" in result.stderr
    assert told in json.loads(result.stdout)["warnings"][0]


def test_a_copy_of_the_classes_is_named(tmp_path):
    frame = people().with_columns((pl.col("pain") > 5).alias("ill"))
    frame = frame.with_columns(pl.when("ill").then(pl.lit("yes")).otherwise(pl.lit("no")).alias("word"))
    frame.drop("pain").write_csv(tmp_path / "a.csv")
    result = here("fit", tmp_path / "a.csv", "-t", "ill", "-m", "slr", "--cv", 2, "--set", "average=false")
    assert "the feature 'word' determines the target 'ill' exactly" in result.stderr
    assert "'dose' determines" not in result.stderr


# --- what cannot be read ---


def test_excel_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.xlsx").write_bytes(workbook(people()))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    result = here("fit", tmp_path / "a.xlsx", "-t", "pain")
    assert result.exit_code == 2
    assert "openpyxl is needed to read" in result.stderr
    assert "pip install 'sparsebayes[excel]'" in result.stderr


def test_other_sheets_are_said(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(workbook(people(), ("data", "notes")))
    assert (
        "Sheet 'data' was read; the other sheets were not ('notes')"
        in here("fit", tmp_path / "a.xlsx", "-t", "pain", *ONE).stderr
    )


def test_names_of_excel_columns_are_made_different():
    assert excel._distinct(["a", "a", "b", "a"]) == ["a", "a_duplicated_0", "b", "a_duplicated_1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xls", b"\xd0\xcf\x11\xe0", "cannot read .xls files.*save it as .xlsx"),
        ("a.xlsx", b"PK\x03\x04 and nothing more", "cannot be read as an Excel file"),
        ("a.zip", b"PK\x03\x04 and nothing more", "cannot be read as a ZIP archive"),
        ("a.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:-20], "is a damaged gzip file"),
        ("a.jsonl", b'{"age": 1}\n{"age": ', "cannot be read as jsonl"),
    ],
    ids=["xls", "xlsx", "zip", "gz", "jsonl"],
)
def test_damaged_files_are_refused(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    result = here("fit", tmp_path / name, "-t", "pain")
    assert result.exit_code == 3
    assert not result.stdout
    with pytest.raises(DataError, match=message):
        open_table(str(tmp_path / name))


def test_an_archive_of_two_tables_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)
    result = here("fit", tmp_path / "a.zip", "-t", "pain")
    assert result.exit_code == 3
    assert "contains 2 files (a.csv, b.csv); a ZIP archive must contain one table" in result.stderr


def test_text_without_zero_bytes_is_left_alone():
    assert decoded(b"a,b\n1,2\n") == b"a,b\n1,2\n"
