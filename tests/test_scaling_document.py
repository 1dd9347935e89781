"""What docs/scaling.md shows."""

import os
from pathlib import Path

import polars as pl
import pytest
from numpy.testing import assert_allclose
from test_documents import python_blocks

from sparsebayes import Moments

COLUMNS = ["a", "b", "year", "y"]


@pytest.fixture
def frame(rng):
    numbers = rng.normal([0, 3, 2000, 1], 1.0, (200, 4))
    return pl.DataFrame(numbers, schema=COLUMNS)


def blocks() -> list[str]:
    return python_blocks("docs/scaling.md")


def block_with(word: str) -> str:
    (code,) = [each for each in blocks() if word in each]
    return code


def namespace_of(word: str) -> dict:
    """The names that the document's block with a word defines, after those of the first two."""
    namespace: dict = {}
    exec(block_with("read_blocks(X"), namespace)
    exec(block_with("fit_moments"), namespace)
    assert namespace["model"].active_.tolist() == [0, 2]
    exec(block_with(word), namespace)
    return namespace


def test_every_block_is_tried():
    tried = (
        "read_blocks(X",
        "fit_moments",
        "import duckdb",
        "import polars",
        "mapInPandas",
        "import dask",
        "import torch",
    )
    assert {block_with(word) for word in tried} == set(blocks())


def test_the_first_example_finds_its_features():
    namespace: dict = {}
    exec(block_with("read_blocks(X"), namespace)
    assert namespace["model"].active_.tolist() == [0, 2]


class Table:
    """What the document uses of a Spark table."""

    def __init__(self, frame):
        self.frame = frame

    def mapInPandas(self, function, schema):
        assert schema == "moments binary"
        halves = [self.frame[:90], self.frame[90:]]
        self.found = [row for half in halves for part in function([half]) for row in part.itertuples()]
        return self

    def collect(self):
        return self.found


def assert_moments_of(frame, found):
    expected = Moments.of(frame.to_numpy()[:, :3], frame.to_numpy()[:, 3])
    assert found.n == len(frame)
    assert_allclose(found.mean, expected.mean, rtol=1e-10)
    assert_allclose(found.scatter, expected.scatter, rtol=1e-10)


def test_moments_by_spark(frame):
    namespace = namespace_of("mapInPandas")
    namespace["features"] = COLUMNS[:3]
    assert_moments_of(frame, namespace["moments_by_spark"](Table(frame.to_pandas())))


def test_moments_by_dask(frame):
    dask_array = pytest.importorskip("dask.array", reason="Dask is not installed")
    namespace = namespace_of("mapInPandas")
    exec(block_with("import dask"), namespace)
    numbers = dask_array.from_array(frame.to_numpy(), chunks=(70, 4))
    assert_moments_of(frame, namespace["moments_by_dask"](numbers[:, :3], numbers[:, 3]))


def test_a_fit_where_the_tensors_are():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available() or os.environ.get("SCIPY_ARRAY_API") != "1":
        pytest.skip("there is no graphics card, or SCIPY_ARRAY_API=1 is not set")
    assert namespace_of("import torch")["model"].active_.tolist() == [0, 2]


def test_moments_by_polars(frame):
    namespace = namespace_of("import polars")
    assert_moments_of(frame, namespace["moments_by_polars"](frame.lazy(), COLUMNS))


def test_moments_by_duckdb(frame, tmp_path: Path):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    frame.write_parquet(tmp_path / "table.parquet")
    namespace = namespace_of("import duckdb")
    connection = duckdb.connect()
    table = f"'{(tmp_path / 'table.parquet').as_posix()}'"
    assert_moments_of(frame, namespace["moments_by_query"](connection, table, COLUMNS))
