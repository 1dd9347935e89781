"""Our estimators in other packages, where these are installed: nilearn, MAPIE, ArviZ, mlflow, pandas, polars, skops."""

import warnings

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sparsebayes import ARDRegressor, RVMClassifier, RVMRegressor, SparseLogisticRegression
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


def test_nilearn_decodes_images_and_maps_the_weights_back():
    """Two voxels of 216 carry the condition: the map shows them, and new runs are told apart."""
    pytest.importorskip("nilearn", reason="nilearn is not installed")
    import nibabel
    from nilearn.decoding import Decoder
    from sklearn.model_selection import LeaveOneGroupOut

    rng = np.random.default_rng(0)
    shape, n = (6, 6, 6), 120
    face, signal = rng.integers(0, 2, n), [40, 130]
    voxels = rng.standard_normal((n, 216))
    voxels[:, signal] += 2 * face[:, None] - 1
    images = nibabel.Nifti1Image(voxels.T.reshape(*shape, n), np.eye(4))
    mask = nibabel.Nifti1Image(np.ones(shape, dtype=np.int8), np.eye(4))
    decoder = Decoder(
        estimator=SparseLogisticRegression(average=False),
        mask=mask,
        cv=LeaveOneGroupOut(),
        scoring="accuracy",
        screening_percentile=100,
    )
    decoder.fit(images, np.where(face, "face", "house"), groups=np.arange(n) % 4)
    weights = decoder.coef_img_["face"].get_fdata().ravel()
    assert set(signal) <= set(np.flatnonzero(weights))
    assert np.count_nonzero(weights) < 10
    assert set(np.argsort(-np.abs(weights))[:2]) == set(signal)
    assert np.mean(decoder.cv_scores_["face"]) > 0.8
    assert (decoder.predict(images) == np.where(face, "face", "house")).mean() > 0.8


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


def test_mapie_makes_conformal_sets_of_classes(regression):
    pytest.importorskip("mapie", reason="MAPIE is not installed")
    from mapie.classification import SplitConformalClassifier

    X, y = regression
    classes = np.digitize(y, [-1, 1])
    model = RVMClassifier().fit(X[:100], classes[:100])
    conformal = SplitConformalClassifier(model, confidence_level=0.9, prefit=True)
    conformal.conformalize(X[100:200], classes[100:200])
    _, sets = conformal.predict_set(X[200:])
    assert 0.8 <= sets[np.arange(100), classes[200:], 0].mean() <= 1
    assert sets.sum(axis=1).mean() < 2.5


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
    np.testing.assert_allclose(summary["mean"], model.coef_, atol=0.02)
    found = summary["sd"].to_numpy()[model.active_]
    np.testing.assert_allclose(found, np.sqrt(np.diag(model.covariance_)), rtol=0.1)
    assert summary.loc["coef[b]", "r_hat"] < 1.01


def test_mlflow_keeps_and_returns_a_model(regression, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'runs.db'}")
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    import mlflow.sklearn

    X, y = regression
    model = make_pipeline(StandardScaler(), ARDRegressor(average=False)).fit(X, y)
    experiment = mlflow.create_experiment("test", artifact_location=(tmp_path / "artifacts").as_uri())
    # mlflow would otherwise import the model in a new process, to see what it needs.
    form = {"serialization_format": "cloudpickle", "pip_requirements": ["sparsebayes"]}
    with mlflow.start_run(experiment_id=experiment):
        mlflow.log_metric("log_evidence", model[-1].log_evidence_)
        logged = mlflow.sklearn.log_model(model, name="model", **form)
    again = mlflow.sklearn.load_model(logged.model_uri)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again[-1].predict_interval(X), model[-1].predict_interval(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_go_in_and_come_out(regression, library):
    module = pytest.importorskip(library)
    X, y = regression
    frame = module.DataFrame(dict(zip("abcdefgh", X.T, strict=True)))
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


def test_skops_writes_a_card_of_a_model(regression, tmp_path):
    card = pytest.importorskip("skops.card", reason="skops is not installed")
    X, y = regression
    model = ARDRegressor(average=False).fit(X, y)
    made = card.Card(model)
    made.add(**{"Model description": "Which of eight measurements matter."})
    made.add_metrics(**{"log evidence": round(model.log_evidence_, 1)})
    made.add_table(**{"Kept features": {"feature": model.active_, "weight": model.coef_[model.active_].round(2)}})
    path = tmp_path / "README.md"
    made.save(path)
    text = path.read_text(encoding="utf-8")
    assert "Which of eight measurements matter." in text
    assert f"{model.log_evidence_:.1f}" in text
    assert "average" in text  # the table of hyperparameters
