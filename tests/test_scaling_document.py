"""What docs/scaling.md shows."""

from pathlib import Path

import numpy as np
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


def namespace_of(word: str) -> dict:
    """The names that the document's blocks define, up to the one that imports a package."""
    namespace: dict = {}
    for code in blocks():
        if "import duckdb" in code and word != "duckdb":
            continue
        exec(code, namespace)
        if f"import {word}" in code:
            break
    return namespace


def test_the_examples_find_their_features():
    namespace: dict = {}
    for code in blocks()[:2]:
        exec(code, namespace)
        assert namespace["model"].active_.tolist() == [0, 2]


def test_moments_by_polars(frame):
    namespace = namespace_of("polars")
    found = namespace["moments_by_polars"](frame.lazy(), COLUMNS)
    assert_allclose(found.scatter, Moments.of(frame.to_numpy()[:, :3], frame.to_numpy()[:, 3]).scatter, rtol=1e-10)


def test_moments_by_duckdb(frame, tmp_path: Path):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    frame.write_parquet(tmp_path / "table.parquet")
    namespace = namespace_of("duckdb")
    connection = duckdb.connect()
    table = f"'{(tmp_path / 'table.parquet').as_posix()}'"
    found = namespace["moments_by_query"](connection, table, COLUMNS)
    assert found.n == len(frame)
    assert_allclose(found.scatter, Moments.of(frame.to_numpy()[:, :3], frame.to_numpy()[:, 3]).scatter, rtol=1e-10)
    assert np.allclose(found.mean, frame.to_numpy().mean(axis=0))
