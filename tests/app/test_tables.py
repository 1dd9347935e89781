"""Tables of every kind become the same matrix, and what cannot is refused by name."""

import gzip
import sqlite3

import numpy as np
import polars as pl
import pytest

from sparsebayes.app.columns import Recipe, chosen
from sparsebayes.app.datasets import DATASETS
from sparsebayes.app.errors import DataError
from sparsebayes.app.tables import open_table
from sparsebayes.app.targets import recognise

FRAME = pl.DataFrame(
    {
        "größe": [1.5, -2.0, 3.25],
        "n": [1, 2, 3],
        "色 [x]": ["rot", "grün", "blau"],
        "ja": [True, False, True],
        "zwei, Wörter": ["a", "b", "a"],
    }
)
ENCODED = ["größe", "n", "色 [x]=blau", "色 [x]=grün", "色 [x]=rot", "ja=true", "zwei, Wörter=b"]
MATRIX = [[1.5, 1, 0, 0, 1, 1, 0], [-2, 2, 0, 1, 0, 0, 1], [3.25, 3, 1, 0, 0, 1, 0]]


def to_sqlite(path):
    with sqlite3.connect(path) as connection:
        connection.execute(
            'CREATE TABLE "my ""table" ("größe" REAL, n INTEGER, "色 [x]" TEXT, ja TEXT, "zwei, Wörter")'
        )
        rows = FRAME.with_columns(pl.col("ja").cast(pl.String)).rows()
        connection.executemany('INSERT INTO "my ""table" VALUES (?, ?, ?, ?, ?)', rows)
    connection.close()


WRITERS = {
    "a.csv": FRAME.write_csv,
    "a.csv.gz": lambda path: path.write_bytes(gzip.compress(FRAME.write_csv().encode())),
    "a[1]*.csv": lambda path: path.write_text(FRAME.write_csv(), encoding="utf-8"),
    "a.tsv": lambda path: FRAME.write_csv(path, separator="\t"),
    "semicolons.csv": lambda path: FRAME.write_csv(path, separator=";"),
    "mark.csv": lambda path: FRAME.write_csv(path, include_bom=True),
    "a.parquet": FRAME.write_parquet,
    "a.feather": FRAME.write_ipc,
    "a.db": to_sqlite,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_table_gives_the_same_matrix(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    table = open_table(f'sqlite:///{path}#my "table' if name.endswith("db") else str(path))
    assert table.columns == FRAME.columns
    frame = table.read(table.columns)
    recipe = Recipe.of(frame, table.columns, "")
    assert recipe.features == ENCODED
    np.testing.assert_array_equal(recipe.encode(frame), MATRIX)
    assert table.read(["n", "größe"]).columns == ["n", "größe"]


def test_a_recipe_survives_json_and_takes_columns_in_any_order():
    recipe = Recipe.of(FRAME, FRAME.columns, "")
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe
    np.testing.assert_array_equal(again.encode(FRAME.select(reversed(FRAME.columns))), MATRIX)


def test_text_far_down_a_column_of_numbers_is_seen(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n" + "1\n" * 20_000 + "high\n")
    assert open_table(str(path)).read(["x"])["x"].dtype == pl.String


@pytest.mark.parametrize("word", ["", "NA", "NaN", "null", "?"])
def test_missing_values_are_refused_by_column_and_row(word, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"x,z\n1,3\n2,{word}\n3,4\n")
    frame = open_table(str(path)).read(["x", "z"])
    with pytest.raises(DataError, match=r"column 'z' has a missing value in row 2.*--impute median"):
        Recipe.of(frame, ["x", "z"], "").encode(frame)
    X = Recipe.of(frame, ["x", "z"], "median").encode(frame)
    np.testing.assert_array_equal(X, [[1, 3], [2, np.nan], [3, 4]])


def test_a_missing_category_is_a_level_when_imputing_and_refused_otherwise():
    frame = pl.DataFrame({"c": ["a", None, "b", None]})
    with pytest.raises(DataError, match=r"column 'c' has missing values in 2 rows \(first: row 2\)"):
        Recipe.of(frame, ["c"], "")
    recipe = Recipe.of(frame, ["c"], "median")
    assert recipe.features == ["c=a", "c=b", "c=(missing)"]
    np.testing.assert_array_equal(recipe.encode(frame), [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, np.inf, 2.0], "column 'c' is infinite in row 2"),
        ([None, None, None], "column 'c' has no values.*--exclude 'c'"),
        ([f"name {k}" for k in range(60)], "column 'c' has 60 different values.*--exclude 'c'"),
        (pl.Series(["2020-01-01"] * 3).str.to_date(), "column 'c' has type Date"),
    ],
)
def test_what_is_no_feature_is_refused(column, message):
    frame = pl.DataFrame({"c": column})
    with pytest.raises(DataError, match=message):
        Recipe.of(frame, ["c"], "").encode(frame)


def test_new_rows_with_unknown_levels_missing_values_or_text_are_refused():
    recipe = Recipe.of(FRAME, FRAME.columns, "")
    with pytest.raises(
        DataError, match=r"'色 \[x\]' has 'lila' in row 3, which the training data lack; known are 'blau'"
    ):
        recipe.encode(FRAME.with_columns(pl.Series("色 [x]", ["rot", "rot", "lila"])))
    with pytest.raises(DataError, match=r"'色 \[x\]' has a missing value in row 1"):
        recipe.encode(FRAME.with_columns(pl.Series("色 [x]", [None, "rot", "rot"])))
    with pytest.raises(DataError, match="column 'n' must be numeric, but contains 'many'"):
        recipe.encode(FRAME.with_columns(pl.lit("many").alias("n")))
    used = np.array([name in ("n", "色 [x]=rot") for name in recipe.features])
    assert recipe.needed(used) == ["n", "色 [x]"]
    np.testing.assert_array_equal(recipe.encode(FRAME.select("n")), np.array(MATRIX) * (np.arange(7) == 1))


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(DataError, match="'c=b' is the name of a column and of an encoded category"):
        Recipe.of(pl.DataFrame({"c": ["a", "b"], "c=b": [1, 2]}), ["c", "c=b"], "")


COLUMNS = ["id", "w1", "w2", "w10", "y", "w[1]"]


@pytest.mark.parametrize(
    ("wanted", "unwanted", "expected"),
    [
        ([], [], ["id", "w1", "w2", "w10", "w[1]"]),
        (["w*"], [], ["w1", "w2", "w10", "w[1]"]),
        (["w?", "id"], [], ["id", "w1", "w2"]),
        (["w*", "!w1*"], [], ["w2", "w[1]"]),
        (["!id"], ["w1"], ["w2", "w10", "w[1]"]),
        (["w[1]"], [], ["w[1]"]),  # the name itself, not the glob
        (["*"], ["w*"], ["id"]),
    ],
)
def test_columns_are_chosen_by_globs(wanted, unwanted, expected):
    assert chosen(COLUMNS, wanted, unwanted, ["y"]) == expected


def test_a_glob_that_matches_nothing_is_refused():
    with pytest.raises(DataError, match=r"--features 'z\*' matches no column; the columns are 'id'"):
        chosen(COLUMNS, ["z*"], [], ["y"])
    with pytest.raises(DataError, match="--exclude 'Id' matches no column"):
        chosen(COLUMNS, [], ["Id"], ["y"])
    with pytest.raises(DataError, match="no feature is left"):
        chosen(COLUMNS, ["y"], [], ["y"])


@pytest.mark.parametrize(
    ("values", "asked", "task", "classes"),
    [
        ([0.5, 1.5, 2.5, 1.5], "auto", "regression", []),
        ([0, 1, 1, 0], "auto", "binary", [0, 1]),
        ([0.0, 1.0, 1.0, 0.0], "auto", "binary", [0, 1]),
        ([True, False, False, True], "auto", "binary", [False, True]),
        (["b", "a", "c"] * 2, "auto", "multiclass", ["a", "b", "c"]),
        ([1, 2, 3] * 2, "auto", "multiclass", [1, 2, 3]),
        ([1, 2, 3] * 2, "regression", "regression", []),
        (list(range(20)), "auto", "regression", []),
        (list(range(20)) * 2, "classification", "multiclass", list(range(20))),
        ([0.5, 1.5] * 2, "classification", "binary", ["0.5", "1.5"]),
    ],
)
def test_the_task_is_read_off_the_target(values, asked, task, classes):
    target = recognise(pl.Series("y", values), asked)
    assert (target.task, target.classes) == (task, classes)
    assert len(target.y) == len(values)


def test_few_whole_numbers_say_how_to_override():
    assert "--task regression" in recognise(pl.Series("stars", [1, 2, 3] * 3)).said
    assert "--task" not in recognise(pl.Series("y", [0, 1] * 3)).said


@pytest.mark.parametrize(
    ("values", "asked", "message"),
    [
        ([1.0, None, 3.0], "auto", r"missing or infinite in 1 of 3 rows \(first: row 2\)"),
        ([1.0, np.nan, 3.0], "auto", "missing or infinite in 1 of 3 rows"),
        ([2, 2, 2], "auto", r"is constant \(2 in every row\)"),
        (["a", "b", "b"], "auto", "class 'a' of 'y' has only one row"),
        (["a", "b"] * 2, "regression", "use --task classification"),
        ([str(k) + "x" for k in range(150)], "auto", "150 different values; at most 100 classes"),
    ],
)
def test_what_is_no_target_is_refused(values, asked, message):
    with pytest.raises(DataError, match=message):
        recognise(pl.Series("y", values), asked)


@pytest.mark.parametrize("name", DATASETS)
def test_the_built_in_data_sets_are_as_they_are_listed(name):
    data, table = DATASETS[name], open_table(name)
    frame = table.read(table.columns)
    assert table.target == data.target
    assert frame.shape == (data.n_rows, data.n_features + 1)
    assert recognise(frame[data.target]).task == data.task


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"a,b\n", "no rows"),
        ("a.dta", b"PK", r"cannot read .dta files.*supported are .csv"),
        ("a.parquet", b"this is no parquet file", "cannot be read as parquet"),
        ("a.feather", b"this is no feather file", "cannot be read as feather"),
        ("latin.csv", "größe,y\n1,2\n".encode("latin-1"), "the header of .* is not UTF-8: convert the file first"),
        ("words.csv", "c,y\ngrün,2\n".encode("latin-1"), "cannot be read.*: convert the file first"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3\n", "cannot be read"),
    ],
)
def test_files_that_hold_no_table_are_refused(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)

    def read():
        table = open_table(str(path))
        return table.read(table.columns)

    with pytest.raises(DataError, match=message):
        read()


def test_databases_are_opened_by_the_names_of_their_tables(tmp_path):
    path = tmp_path / "a.db"
    to_sqlite(path)
    assert open_table(f"sqlite:///{path}").columns == FRAME.columns  # the only table needs no name
    with pytest.raises(DataError, match='one of the tables my "table'):
        open_table(f"sqlite:///{path}#x; DROP TABLE a")
    with pytest.raises(DataError, match=r"file nowhere\.db does not exist"):
        open_table("sqlite:///nowhere.db#a")
    (tmp_path / "text.db").write_text("this is text, not a database, and long enough to be looked at")
    with pytest.raises(DataError, match="cannot be read"):
        open_table(f"sqlite:///{tmp_path / 'text.db'}#a")
