"""SparseLogisticRegression against the original toolbox, closed forms, simulations and hostile data."""

import pickle
from functools import partial

import numpy as np
import pytest
from inferences import INFERENCES, ard_inference, every_pair
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate
from scipy.special import expit, logit
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import SparseLogisticRegression
from sparsebayes.core.predictive import PROBABILITIES


@pytest.fixture(scope="session")
def three_classes():
    rng = np.random.default_rng(5)
    centre = np.array([[2.0, 0, 0, 0], [0, 2.0, 0, 0], [-1.0, -1.0, 0, 0]])
    codes = np.arange(90) % 3
    return centre[codes] + rng.standard_normal((90, 4)), np.array(["ant", "bee", "cat"])[codes]


# --- the original toolbox ---


@pytest.mark.parametrize("inference", ["variational", "laplace"])
def test_ard_is_the_toolboxs(log_problem, inference, log_data, recorded):
    X, t = log_data(log_problem)
    expected = recorded(log_problem, f"slrtb_slr_{inference[:3]}")["results"]
    model = SparseLogisticRegression(
        average=False, inference=inference, min_gain=0, intercept_prior="ard", tol=1e-9, proba="plug-in"
    ).fit(X, t)
    w = np.array(expected["w"])
    assert_allclose(model.coef_[0], w[:-1], atol=1e-5)
    assert_allclose(model.intercept_, w[-1:], atol=1e-5)
    kept = np.ravel(expected["kept_0based"])
    assert_array_equal(model.active_, kept[kept < X.shape[1]])
    assert (model.intercept_[0] != 0) == (X.shape[1] in kept)
    assert_allclose(model.predict_proba(log_data(log_problem, "test")[0])[:, 1], expected["p_test"], atol=1e-6)
    assert model.converged_
    assert model.optimality_gap_ < 1e-6


@pytest.mark.parametrize("inference", ["coordinate", "laplace"])
def test_l1_is_the_optimum(log_problem, inference, log_data, recorded):
    X, t = log_data(log_problem)
    program = "slrtb_l1slr_c" if inference == "coordinate" else "slrtb_l1slr_lap"
    w = np.array(recorded(log_problem, program)["derived_by_harness"]["independent_optimum"]["w"])
    model = SparseLogisticRegression(
        average=False, prior="laplace", inference=inference, penalty=2.0, intercept_prior="ard", tol=1e-9
    )
    model.fit(X, t)
    assert_allclose(model.coef_[0], w[:-1], atol=1e-5)
    assert_allclose(model.intercept_, w[-1:], atol=1e-5)
    assert_array_equal(model.active_, np.flatnonzero(np.abs(w[:-1]) > 1e-5))


# --- what is asked, and what is answered ---


@pytest.mark.parametrize("prior", INFERENCES)
@pytest.mark.parametrize("inference", ["laplace", "variational", "coordinate", "reweighted-l1"])
def test_pairs_that_do_not_exist_are_named(prior, inference, make_classes):
    X, y = make_classes(n=40, d=3)
    model = SparseLogisticRegression(average=False, prior=prior, inference=inference)
    if inference in INFERENCES[prior]:
        assert model.fit(X, y).converged_
        return
    with pytest.raises(ValueError, match=f"prior='{prior}' has no inference='{inference}'") as error:
        model.fit(X, y)
    assert all(name in str(error.value) for name in INFERENCES[prior])


def test_one_class_is_refused(make_classes):
    X, y = make_classes()
    with pytest.raises(ValueError, match="one class only"):
        SparseLogisticRegression(average=False).fit(X, np.full(len(y), "same"))
    with pytest.raises(ValueError, match=r"one class only \(1 in"):
        SparseLogisticRegression(average=False).fit(X, y, sample_weight=(y == 1).astype(float))
    with pytest.raises(ValueError, match="zero"):
        SparseLogisticRegression(average=False).fit(X, y, sample_weight=np.zeros(len(y)))


@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (-1, 1), (3, 17), (0.0, 1.0)], ids=str)
def test_labels_of_any_type(labels, make_classes):
    X, y = make_classes()
    y_named = np.array(labels)[y]
    model = SparseLogisticRegression(average=False).fit(X, y_named)
    plain = SparseLogisticRegression(average=False).fit(X, y)
    assert_array_equal(model.classes_, labels)
    assert_array_equal(model.coef_, plain.coef_)
    assert model.predict(X).dtype == y_named.dtype
    assert_array_equal(model.predict(X), np.array(labels)[plain.predict(X)])
    assert_array_equal(model.predict(X) == labels[1], model.decision_function(X) > 0)


@every_pair
def test_swapped_labels_swap_the_signs(prior, inference, make_classes):
    X, y = make_classes()
    model = SparseLogisticRegression(average=False, prior=prior, inference=inference, tol=1e-8)
    one, other = clone(model).fit(X, y), clone(model).fit(X, 1 - y)
    assert_allclose(one.coef_, -other.coef_, atol=1e-5)
    assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, ::-1], atol=1e-6)
    assert_allclose(one.log_evidence_, other.log_evidence_, rtol=1e-7)


# --- weights of rows ---


@every_pair
def test_integer_weights_are_repeated_rows(prior, inference, make_classes, rng):
    X, y = make_classes()
    weight = rng.integers(0, 4, len(y))
    model = SparseLogisticRegression(average=False, prior=prior, inference=inference, min_gain=0.5, tol=1e-9)
    one = clone(model).fit(X, y, sample_weight=weight)
    many = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_array_equal(one.active_, many.active_)
    assert_allclose(one.coef_, many.coef_, atol=1e-5)
    assert_allclose(one.predict_proba(X), many.predict_proba(X), atol=1e-6)
    assert_allclose(one.log_evidence_, many.log_evidence_, rtol=1e-7)


@every_pair
def test_rows_of_weight_zero_are_not_there(prior, inference, make_classes):
    X, y = make_classes()
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    hostile = np.where(weight[:, None] > 0, X, 1e6)
    model = SparseLogisticRegression(average=False, prior=prior, inference=inference)
    one, other = clone(model).fit(hostile, y, sample_weight=weight), clone(model).fit(X[weight > 0], y[weight > 0])
    assert_allclose(one.coef_, other.coef_, rtol=1e-10)
    assert_allclose(one.intercept_, other.intercept_, rtol=1e-10)


def test_class_weight_is_sample_weight(make_classes):
    X, y = make_classes(offset=2.0)
    one = SparseLogisticRegression(average=False, class_weight={0: 3.0, 1: 0.5}).fit(
        X, y, sample_weight=np.linspace(0.5, 1, len(y))
    )
    by_hand = np.where(y == 0, 3.0, 0.5) * np.linspace(0.5, 1, len(y))
    other = SparseLogisticRegression(average=False).fit(X, y, sample_weight=by_hand)
    assert_array_equal(one.coef_, other.coef_)
    balanced = SparseLogisticRegression(average=False, class_weight="balanced").fit(X, y)
    other = SparseLogisticRegression(average=False).fit(X, y, sample_weight=len(y) / (2 * np.bincount(y))[y])
    assert_allclose(balanced.coef_, other.coef_, rtol=1e-10)


# --- more than two classes ---


@pytest.mark.parametrize("proba", PROBABILITIES)
def test_one_against_the_rest(proba, three_classes):
    X, y = three_classes
    model = SparseLogisticRegression(average=False, proba=proba, multi_class="one-vs-rest").fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.decision_function(X).shape == (90, 3)
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert ((p >= 0) & (p <= 1)).all()
    assert model.score(X, y) > 0.75
    for k, name in enumerate(model.classes_):
        single = SparseLogisticRegression(average=False, proba=proba).fit(X, y == name)
        assert_array_equal(model.coef_[k], single.coef_[0])
        assert_array_equal(model.active_[k], single.active_)
        assert_allclose(model.covariance_[k], single.covariance_)


@pytest.mark.parametrize("multi_class", ["softmax", "one-vs-rest"])
def test_names_of_classes_may_be_permuted(multi_class, three_classes):
    X, y = three_classes
    order = {"ant": "z", "bee": "y", "cat": "x"}
    model = SparseLogisticRegression(average=False, multi_class=multi_class)
    one = clone(model).fit(X, y)
    with parallel_config(backend="threading"):
        other = clone(model).set_params(n_jobs=2).fit(X, np.array([order[name] for name in y]))
    assert_allclose(one.coef_, other.coef_[::-1], atol=1e-4)
    assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, ::-1], atol=1e-3)
    assert_allclose(one.predict_proba(X).sum(axis=1), 1, rtol=1e-12)


# --- probabilities ---


@pytest.mark.parametrize("proba", PROBABILITIES)
@every_pair
def test_probabilities_are_probabilities_of_each_row(prior, inference, proba, make_classes, rng):
    X, y = make_classes()
    model = SparseLogisticRegression(average=False, prior=prior, inference=inference, proba=proba).fit(X, y)
    new = np.concatenate([rng.standard_normal((5, 8)), 1e3 * rng.standard_normal((3, 8))])
    p = model.predict_proba(new)
    assert ((p >= 0) & (p <= 1)).all()
    assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert_allclose(np.concatenate([model.predict_proba(row[None]) for row in new]), p, rtol=1e-9, atol=1e-14)
    assert_array_equal(model.predict(new), (p[:, 1] > 0.5).astype(int))
    inner = (p[:, 1] > 1e-10) & (p[:, 1] < 1 - 1e-10)
    assert_allclose(model.decision_function(new)[inner], logit(p[inner, 1]), rtol=1e-4, atol=1e-10)


def test_quadrature_is_the_integral(make_classes, rng):
    X, y = make_classes(n=40)
    model = SparseLogisticRegression(average=False, min_gain=0, prior="ridge").fit(X, y)
    new = rng.standard_normal((6, 8)) * np.array([0.1, 0.5, 1, 2, 5, 20])[:, None]
    fit = model._fits[0]
    for row, p in zip(new, model.predict_proba(new)[:, 1], strict=True):
        m, sd = float(fit.latent(row[None])[0]), float(np.sqrt(fit.latent_variance(row[None])[0]))
        f = partial(lambda z, m, sd: expit(m + sd * z) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi), m=m, sd=sd)
        break_at = np.clip(-m / sd, -11, 11)
        expected = integrate.quad(f, -12, break_at, epsabs=1e-13, limit=500)[0]
        expected += integrate.quad(f, break_at, 12, epsabs=1e-13, limit=500)[0]
        assert_allclose(p, expected, atol=1e-10)


@ard_inference
def test_latent_moments_by_brute_force(inference, make_classes, rng):
    """Posterior of weights and intercept from the fitted precisions, with an explicit flat column of ones."""
    X, y = make_classes()
    X = X + 3
    model = SparseLogisticRegression(average=False, inference=inference, tol=1e-10).fit(X, y)
    Phi = np.column_stack([X[:, model.active_], np.ones(len(X))])
    A = np.append(model.precision_, 0.0)
    if inference == "variational":
        xi = np.ones(len(X))
        for _ in range(500):
            Sigma = np.linalg.inv(np.diag(A) + (Phi.T * (np.tanh(xi / 2) / (2 * xi))) @ Phi)
            mean = Sigma @ Phi.T @ (y - 0.5)
            xi = np.sqrt((Phi @ mean) ** 2 + np.einsum("ni,ij,nj->n", Phi, Sigma, Phi))
    else:
        mean = np.append(model.coef_[0, model.active_], model.intercept_)
        for _ in range(20):
            p = expit(Phi @ mean)
            Sigma = np.linalg.inv(np.diag(A) + (Phi.T * (p * (1 - p))) @ Phi)
            mean = mean + Sigma @ (Phi.T @ (y - p) - A * mean)
    assert_allclose(np.append(model.coef_[0, model.active_], model.intercept_), mean, atol=1e-5)
    assert_allclose(model.covariance_, Sigma[:-1, :-1], rtol=1e-4)
    new = rng.standard_normal((5, 8)) * 3
    Phi = np.column_stack([new[:, model.active_], np.ones(5)])
    assert_allclose(model._fits[0].latent(new), Phi @ mean, atol=1e-4)
    assert_allclose(model.set_params(proba="plug-in").decision_function(new), Phi @ mean, atol=1e-4)
    assert_allclose(model._fits[0].latent_variance(new), np.diag(Phi @ Sigma @ Phi.T), rtol=1e-4)


def test_moments_of_posterior_samples(make_classes):
    X, y = make_classes()
    model = SparseLogisticRegression(average=False).fit(X + 2, y)
    coef, intercept = model.sample_posterior(20_000, random_state=0)
    assert coef.shape == (20_000, 1, 8)
    assert intercept.shape == (20_000, 1)
    sd = np.sqrt(np.diag(model.covariance_))
    drawn = coef[:, 0, model.active_]
    assert_allclose((drawn.mean(axis=0) - model.coef_[0, model.active_]) / sd, 0, atol=0.04)
    assert_allclose(np.cov(drawn.T) / np.outer(sd, sd), model.covariance_ / np.outer(sd, sd), atol=0.05)
    gone = np.setdiff1d(np.arange(8), model.active_)
    assert not coef[:, 0, gone].any()
    new = X[:4] + 2
    eta = coef[:, 0] @ new.T + intercept
    assert_allclose(eta.mean(axis=0), model._fits[0].latent(new), atol=0.04)
    assert_allclose(eta.var(axis=0), model._fits[0].latent_variance(new), rtol=0.05)
    assert_array_equal(coef, model.sample_posterior(20_000, random_state=0)[0])


# --- what is found ---


def test_default_finds_the_features_that_matter(make_classes):
    truth = np.arange(50) < 6
    scores, kept, textbook = [], [], []
    for seed in range(5):
        X, y = make_classes(1000, 50, 6, seed=seed, size=0.7)
        found = SparseLogisticRegression(average=False).fit(X, y).get_support()
        scores.append(2 * (found & truth).sum() / (found.sum() + truth.sum()))
        kept.append(found.sum())
        if seed < 2:
            textbook.append(SparseLogisticRegression(average=False, min_gain=0, tol=1e-4).fit(X, y).get_support().sum())
    assert np.mean(scores) >= 0.95
    assert sum(textbook) > sum(kept[:2])


def test_noise_is_called_noise(make_classes):
    false = sum(
        len(SparseLogisticRegression(average=False).fit(*make_classes(200, 50, 0, seed=seed)).active_) > 0
        for seed in range(40)
    )
    expected = 40 * 50 * chi2.sf(np.log(50) + np.log(200), df=1)
    assert false <= expected + 2 * np.sqrt(expected)


def test_price_grows_with_the_rows_and_with_the_features(make_classes):
    def price(n, d):
        return SparseLogisticRegression(average=False).fit(*make_classes(n, d, 1)).min_gain_

    def worth(r):
        return 0.5 * (r - 1 - np.log(r))

    assert_allclose(price(60, 90), worth(2 * np.log(90)))
    assert_allclose(price(500, 10), worth(np.log(10) + np.log(500)))
    X, y = make_classes(100, 10, 1)
    doubled = SparseLogisticRegression(average=False).fit(X, y, sample_weight=np.full(100, 2.0))
    assert_allclose(doubled.min_gain_, worth(np.log(10) + np.log(200)))


def test_gain_of_a_separating_feature_is_what_is_lost_without_it():
    X = np.random.default_rng(0).standard_normal((60, 5))
    X[:, 2] = np.repeat([-1.0, 1.0], 30) * (3 + np.abs(X[:, 2]))
    y = np.repeat([0, 1], 30)
    model = SparseLogisticRegression(average=False).fit(X, y)
    assert_array_equal(model.active_, [2])
    base = SparseLogisticRegression(average=False).fit(np.zeros((60, 1)), y)
    assert_allclose(model.gain_[0, 2], model.log_evidence_ - base.log_evidence_, rtol=1e-3)
    assert model.gain_[0, 2] > model.min_gain_
    assert model.optimality_gap_ < 0.01


@ard_inference
def test_gain_tells_what_is_kept(inference, make_classes):
    X, y = make_classes()
    model = SparseLogisticRegression(average=False, inference=inference).fit(X, y)
    kept = model.get_support()
    assert kept.any()
    assert (model.gain_[0, kept] > model.min_gain_).all()
    assert (model.gain_[0, ~kept] <= model.min_gain_).all()
    assert_array_equal(model.relevance_[0] > 0, kept)


def test_inferences_agree_with_many_rows(make_classes):
    X, y = make_classes(2000)
    models = [SparseLogisticRegression(average=False, inference=name).fit(X, y) for name in INFERENCES["ard"]]
    for model in models:
        assert_array_equal(model.active_, [0, 1])
        assert_allclose(model.coef_, models[0].coef_, atol=0.05)
    assert_allclose(models[0].log_evidence_, models[2].log_evidence_, rtol=1e-6)
    assert models[1].log_evidence_ < models[0].log_evidence_ + 0.1


# --- scikit-learn's company ---


def test_pickle_and_clone(make_classes):
    X, y = make_classes()
    model = SparseLogisticRegression(average=False, proba="bound").fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(model), "coef_")
    assert clone(model).get_params() == model.get_params()


def test_pipelines_selectors_and_calibration(make_classes):
    X, y = make_classes(200)
    assert make_pipeline(StandardScaler(), SparseLogisticRegression(average=False)).fit(X, y).score(X, y) > 0.7
    selector = SelectFromModel(SparseLogisticRegression(average=False), threshold=1e-10).fit(X, y)
    assert_array_equal(selector.get_support(indices=True), selector.estimator_.active_)
    calibrated = CalibratedClassifierCV(SparseLogisticRegression(average=False), cv=3).fit(X, y)
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    assert cross_val_score(SparseLogisticRegression(average=False), X, y, cv=3, scoring="neg_log_loss").mean() > -0.6


def test_names_of_columns(make_classes):
    pd = pytest.importorskip("pandas")
    X, y = make_classes()
    frame = pd.DataFrame(X, columns=[f"gene {k}" for k in range(8)])
    model = SparseLogisticRegression(average=False).fit(frame, y)
    assert_array_equal(model.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


def test_models_of_version_0_2_0_predict_as_they_did(make_classes):
    """They do not say whether their classes are coupled."""
    X, y = make_classes()
    model = SparseLogisticRegression(average=False).fit(X, y)
    state = dict(model.__getstate__())
    del state["_coupled"]
    older = SparseLogisticRegression()
    older.__setstate__(state)
    assert_array_equal(older.predict_proba(X), model.predict_proba(X))
