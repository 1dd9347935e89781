"""Our estimators in other packages, where these are installed: nilearn, MAPIE, ArviZ, mlflow, pandas, polars, skops."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from packages import skip_without_names, skip_without_packages
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sparsebayes import ARDRegressor, RVMRegressor, load
from sparsebayes.inspection import to_datatree


@pytest.fixture(autouse=True)
def quiet():
    """Other packages warn of many things."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    return X, 2 * X[:, 1] - X[:, 4] + rng.standard_normal(300)


@pytest.mark.parametrize("model", [ARDRegressor(average=False), RVMRegressor()], ids=lambda model: type(model).__name__)
def test_mapie_makes_conformal_intervals(regression, model):
    pytest.importorskip("mapie", reason="MAPIE is not installed")
    from mapie.regression import SplitConformalRegressor

    X, y = regression
    conformal = SplitConformalRegressor(model.fit(X[:100], y[:100]), confidence_level=0.9, prefit=True)
    conformal.conformalize(X[100:200], y[100:200])
    mean, ends = conformal.predict_interval(X[200:])
    np.testing.assert_allclose(mean, model.predict(X[200:]))
    inside = (ends[:, 0, 0] <= y[200:]) & (y[200:] <= ends[:, 1, 0])
    assert 0.8 <= inside.mean() <= 0.98  # three standard errors of a share of 100 rows


@pytest.mark.parametrize("average", [False, "auto"])
def test_arviz_summarises_the_posterior(regression, average):
    """The same means and standard deviations, and no complaint about mixing: draws are independent."""
    az = pytest.importorskip("arviz", reason="ArviZ is not installed")
    X, y = regression
    model = ARDRegressor(average=average).fit(X, y)
    tree = to_datatree(model, feature_names=list("abcdefgh"), random_state=0)
    read = az.from_datatree(tree) if hasattr(az, "from_datatree") else tree
    summary = az.summary(read, var_names=["coef"], round_to=8)
    assert list(summary.index) == [f"coef[{name}]" for name in "abcdefgh"]
    # Chains that agree early leave 60 different draws: four standard errors of their mean.
    error = summary["sd"].to_numpy() / np.sqrt(60)
    assert (np.abs(summary["mean"] - model.coef_) < 4 * error + 1e-3).all()
    found = summary["sd"].to_numpy()[model.active_]
    np.testing.assert_allclose(found, np.sqrt(np.diag(model.covariance_)), rtol=0.1)
    assert summary.loc["coef[b]", "r_hat"] < 1.01


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_go_in_and_come_out(regression, library):
    module = pytest.importorskip(library)
    X, y = regression
    frame = module.DataFrame(dict(zip("abcdefgh", X.T, strict=True)))
    skip_without_names(frame)
    model = ARDRegressor(average=False).set_output(transform=library).fit(frame, module.Series(y))
    assert model.feature_names_in_.tolist() == list("abcdefgh")
    kept = model.transform(frame)
    assert isinstance(kept, module.DataFrame)
    assert list(kept.columns) == ["b", "e"]
    np.testing.assert_array_equal(np.asarray(kept), X[:, [1, 4]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("hgfedcba")])


def test_frames_pass_through_a_pipeline_with_categories(regression):
    """The names of the claimed features are those after encoding."""
    pd = pytest.importorskip("pandas")
    X, y = regression
    frame = pd.DataFrame({"x": X[:, 1], "noise": X[:, 0], "kind": np.where(X[:, 4] > 0, "up", "down")})
    encode = ColumnTransformer(
        [("kind", OneHotEncoder(drop="first", sparse_output=False), ["kind"])], remainder="passthrough"
    )
    steps = make_pipeline(encode, ARDRegressor(average=False)).set_output(transform="pandas").fit(frame, y)
    assert list(steps.transform(frame).columns) == ["kind__kind_up", "remainder__x"]


def card_of(names):
    return (names["folder"] / "README.md").read_text(encoding="utf-8")


PAGE = (Path(__file__).parents[1] / "docs" / "interoperation.md").read_text(encoding="utf-8")
FIRST, *SECTIONS = [
    re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)
]
TITLES = re.findall(r"^## (.*)$", PAGE, flags=re.MULTILINE)
SAYS = {
    "pandas and polars": lambda names: list(names["model"].transform(names["frame"]).columns) == ["b", "e"],
    "ArviZ": lambda names: (
        np.abs(names["included"].to_numpy() - names["model"].inclusion_probability_).max() < 0.1
        and len(names["summary"]) == 8
    ),
    "MAPIE": lambda names: (
        0.8 <= names["covered"] <= 0.98  # three standard errors of a share of 100 rows
        and names["sets"][np.arange(100), names["kind"][200:], 0].mean() >= 0.8
        and names["sets"].sum(axis=1).mean() < 2.5
    ),
    "nilearn": lambda names: (
        set(np.argsort(-np.abs(names["weights"]))[:2]) == {40, 130}
        and np.count_nonzero(names["weights"]) < 10
        and np.mean(names["decoder"].cv_scores_["face"]) > 0.8
    ),
    "mlflow": lambda names: np.array_equal(names["again"].predict(names["X"]), names["model"].predict(names["X"])),
    "Model cards with skops": lambda names: (
        all(words in card_of(names) for words in ("Which of eight", "Claimed features", "max_flips"))
        and np.array_equal(load(names["folder"] / "model.skops").coef_, names["model"].coef_)
    ),
    "pysindy": lambda names: np.count_nonzero(names["system"].coefficients()) == 7,
    "chaospy": lambda names: np.abs(names["surrogate"](*names["nodes"]) - names["values"]).max() < 0.01,
}
"""What must hold after the code of a section."""


@pytest.mark.parametrize(("title", "blocks"), [pair for pair in zip(TITLES, SECTIONS, strict=True) if pair[1]])
def test_a_section_of_the_page_runs_and_says_what_is_true(title, blocks, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    code = "\n".join([*FIRST, *blocks])
    skip_without_packages(code)
    if title == "pandas and polars":
        skip_without_names(pytest.importorskip("polars").DataFrame({"a": [1.0]}))
    names = {}
    exec(code, names)
    assert SAYS[title](names)


def test_every_section_with_code_is_checked():
    assert {title for title, blocks in zip(TITLES, SECTIONS, strict=True) if blocks} == set(SAYS)
