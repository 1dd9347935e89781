"""Sources of blocks: the same sums from each, any chunking, and bad blocks named."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from sparsebayes import Moments, read_blocks
from sparsebayes.core.likelihoods import Bernoulli, Poisson
from sparsebayes.core.statistics import Block, MomentsAbout, NotFinite, SiteMoments, Targets
from sparsebayes.data import blocks as room
from sparsebayes.data.blocks import array_blocks
from sparsebayes.data.passes import Passes

pyarrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
NAMES = ["a", "b", "c"]


@pytest.fixture
def rows(rng):
    return rng.normal([0.0, 5.0, -3.0], 1.0, (50, 3)), rng.poisson(1.0, 50), rng.uniform(0.5, 2, 50)


@pytest.fixture
def frame(rows):
    X, y, weight = rows
    return pl.DataFrame({**dict(zip(NAMES, X.T, strict=True)), "y": y, "w": weight})


@pytest.fixture(params=["parquet", "folder", "npy", "lazy", "iterator", "array"])
def source(request, rows, frame, tmp_path, monkeypatch):
    """The same rows from everywhere, in blocks of at most 16."""
    X, y, weight = rows
    monkeypatch.setattr(room, "ROWS", 16)
    if request.param == "parquet":
        frame.write_parquet(tmp_path / "rows.parquet", row_group_size=20)
        return read_blocks(tmp_path / "rows.parquet", target="y", weight="w")
    if request.param == "folder":
        frame[:30].write_parquet(tmp_path / "1.parquet")
        frame[30:].write_parquet(tmp_path / "2.parquet")
        return read_blocks(str(tmp_path), target="y", weight="w", features=NAMES)
    if request.param == "npy":
        for name, values in (("X", X), ("y", y), ("w", weight)):
            np.save(tmp_path / f"{name}.npy", values)
        return read_blocks(tmp_path / "X.npy", tmp_path / "y.npy", weight=tmp_path / "w.npy")
    if request.param == "lazy":
        return read_blocks(frame.lazy(), target="y", weight="w")
    if request.param == "iterator":
        return read_blocks(lambda: ((X[i : i + 7], y[i : i + 7], weight[i : i + 7]) for i in range(0, 50, 7)))
    return read_blocks(X, y, weight=weight)


def test_moments_are_those_of_the_rows(source, rows):
    X, y, weight = rows
    found, expected = source.reduce(MomentsAbout(np.array([0.0, 5, -3, 1]))), Moments.of(X, y, weight)
    assert found.n == pytest.approx(expected.n)
    assert_allclose(found.mean, expected.mean, rtol=1e-13)
    assert_allclose(found.scatter, expected.scatter, rtol=1e-12, atol=1e-12)


def test_a_pass_over_some_columns(source, rows):
    X, y, weight = rows
    found = source.reduce(MomentsAbout(np.zeros(3)), np.array([2, 0]))
    assert_allclose(found.scatter, Moments.of(X[:, [2, 0]], y, weight).scatter, rtol=1e-10)
    assert source.n_features == 3


@pytest.mark.parametrize("likelihood", [Bernoulli(), Poisson()])
def test_sites_are_derivatives_of_the_likelihood(likelihood, rows, rng):
    """Slopes and products against finite differences of the value, in weights and intercept."""
    X, y, weight = rows
    t = (y > 0).astype(float) if isinstance(likelihood, Bernoulli) else y
    blocks, w, origin = array_blocks(X, t, weight, rows=9), rng.normal(0, 0.3, 3), X.mean(axis=0)

    def value(at):
        return blocks.reduce(SiteMoments(likelihood, origin, at[:3], at[3])).value

    at, step, eye = np.append(w, 0.2), 1e-4, np.eye(4)
    sums = blocks.reduce(SiteMoments(likelihood, origin, w, 0.2))
    slope = [(value(at + step * e) - value(at - step * e)) / (2 * step) for e in eye]
    assert_allclose([*sums.slopes, sums.slope], slope, rtol=1e-6, atol=1e-6)
    bend = [(value(at + step * e) - 2 * value(at) + value(at - step * e)) / step**2 for e in eye]
    assert_allclose([*sums.products.diagonal(), sums.total], -np.array(bend), rtol=1e-3, atol=1e-4)
    eta = (X - origin) @ w + 0.2
    assert sums.value == pytest.approx(weight @ likelihood.log_density(t, eta), rel=1e-12)
    curvature = weight * likelihood.derivatives(t, eta)[1]
    assert_allclose(sums.products, ((X - origin) * curvature[:, None]).T @ (X - origin), rtol=1e-10)
    assert_allclose(sums.sums, curvature @ (X - origin), rtol=1e-9, atol=1e-9)


def test_bounds_are_those_of_jaakkola_and_jordan(rows, rng):
    X, y, weight = rows
    t, w, root = (y > 0).astype(float), rng.normal(0, 0.3, 3), rng.normal(0, 0.2, (4, 4))
    sums = array_blocks(X, t, weight, rows=9).reduce(SiteMoments(Bernoulli(), np.zeros(3), w, 0.1, root))
    eta, ones = X @ w + 0.1, np.column_stack([X, np.ones(50)])
    xi = np.sqrt(eta**2 + ((ones @ root.T) ** 2).sum(axis=1))
    bound = Bernoulli().bound(t, xi)
    assert sums.total == pytest.approx(weight @ bound.precision)
    value = bound.const + bound.shift * eta - 0.5 * bound.precision * eta**2
    assert sums.value == pytest.approx(weight @ value)
    assert sums.slope == pytest.approx(weight @ (bound.shift - bound.precision * eta))


def test_single_precision_is_near(rows):
    X, y, _ = rows
    exact, near = (read_blocks(X, y, precision=each) for each in ("double", "single"))
    about = MomentsAbout(np.append(X.mean(axis=0), y.mean()))
    assert near.first().X.dtype == np.float32
    assert_allclose(near.reduce(about).scatter, exact.reduce(about).scatter, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="precision='half'"):
        read_blocks(X, y, precision="half")


def test_classes_are_counted(source, rows):
    _, y, weight = rows
    found = source.reduce(Targets(), np.empty(0, dtype=np.intp))
    assert_allclose(found.weight, [weight[y == value].sum() for value in np.unique(y)])


@pytest.mark.parametrize("column", ["a", "y", "w"])
def test_missing_values_are_named(frame, tmp_path, column, monkeypatch):
    monkeypatch.setattr("sparsebayes.data.parquet.ROWS", 16)
    values = frame[column].cast(pl.Float64).to_list()
    values[33] = None
    bad = frame.with_columns(pl.Series(column, values))
    bad.write_parquet(tmp_path / "bad.parquet")
    about = MomentsAbout(np.zeros(4))
    blocks = read_blocks(tmp_path / "bad.parquet", target="y", weight="w")
    message = f"column '{column}' has a missing value in file bad.parquet, block 0 \\(from row 0\\), row 33"
    with pytest.raises(ValueError, match=message):
        blocks.reduce(about)
    with pytest.raises(ValueError, match=f"column '{column}' has a missing value in block 0 .*row 33"):
        read_blocks(bad.lazy(), target="y", weight="w").reduce(about)


@pytest.mark.parametrize("statistic", [MomentsAbout(np.zeros(4)), SiteMoments(Bernoulli(), np.zeros(3), np.ones(3), 0)])
def test_values_that_are_not_finite_are_named(rows, statistic):
    X, y, _ = rows
    X = X.copy()
    X[23, 1] = np.inf
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(NotFinite, match=r"X .* in block 2 \(from row 20\), row 3, column 1"),
    ):
        array_blocks(X, y, rows=10).reduce(statistic)


def test_what_cannot_be_read_is_refused(frame, rows, tmp_path):
    X, y, weight = rows
    frame.with_columns(pl.lit("text").alias("d")).write_parquet(tmp_path / "texts.parquet")
    frame.write_parquet(tmp_path / "rows.parquet")
    for message, source, options in (
        ("'d' of texts.parquet has type", tmp_path / "texts.parquet", {"target": "y"}),
        ("'d' has type String", frame.with_columns(pl.lit("text").alias("d")).lazy(), {"target": "y"}),
        ("has no column 'z'", tmp_path / "rows.parquet", {"target": "z"}),
        ("has no column 'z'", frame.lazy(), {"target": "z"}),
        ("target is missing", tmp_path / "rows.parquet", {}),
        ("y is missing", X, {}),
        ("different numbers of rows", X, {"y": y[:-1]}),
        ("holds no file that ends in .parquet", tmp_path / "empty", {"target": "y"}),
        ("has no blocks", lambda: iter(()), {}),
    ):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises((TypeError, ValueError, FileNotFoundError), match=message):
            read_blocks(source, **options)
    changing = iter([(X[:5], y[:5]), (X[:5, :2], y[:5])])
    with pytest.raises(ValueError, match="block 1 has X of shape"):
        read_blocks(lambda: iter([(X[:5], y[:5]), (X[:5, :2], y[:5])])).reduce(MomentsAbout(np.zeros(4)))
    with pytest.raises(TypeError, match="a function that starts a pass"):
        room.iterator_blocks(changing)
    with pytest.raises(ValueError, match="sample_weight is negative in block 0"):
        array_blocks(X, y, -weight).reduce(MomentsAbout(np.zeros(4)))


def test_a_fresh_block_may_be_changed_and_others_not(rows):
    X, y, _ = rows
    before = X.copy()
    MomentsAbout(np.ones(4)).of(Block(X, y))
    assert (before == X).all()
    MomentsAbout(np.ones(4)).of(Block(X, y, fresh=True))
    assert_allclose(X, before - 1)


class Counting:
    """Blocks that count their passes, and break down at one of them."""

    def __init__(self, inner, last=100):
        self.inner, self.last, self.n = inner, last, 0
        self.n_features, self.feature_names = inner.n_features, None

    def reduce(self, statistic, columns=None):
        self.n += 1
        if self.n > self.last:
            raise ConnectionError("a worker was lost")
        return self.inner.reduce(statistic, columns)

    def first(self):
        return self.inner.first()


def test_passes_are_not_made_again(rows, tmp_path):
    blocks = Counting(array_blocks(*rows[:2]))
    statistics = [MomentsAbout(np.zeros(4)), SiteMoments(Bernoulli(), np.zeros(3), np.ones(3), 0.0), Targets()]
    first, again = Passes(blocks, tmp_path / "passes"), Passes(blocks, tmp_path / "passes")
    found = [first.reduce(each) for each in statistics]
    for expected, each in zip(found, statistics, strict=True):
        for name, value in vars(again.reduce(each)).items():
            assert np.array_equal(value, getattr(expected, name))
    assert (blocks.n, again.n_known) == (3, 3)
    with pytest.raises(ValueError, match="belongs to another fit"):
        Passes(blocks, tmp_path / "passes").reduce(MomentsAbout(np.ones(4)))
