"""Kernel models that keep all vectors they need (vectors="all"), and the choice between them and sparse ones."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from sparsebayes import RVMClassifier, RVMRegressor, load, save
from sparsebayes.core.kernels import rbf
from sparsebayes.core.standard_units import StandardisedKernel, StandardUnits
from sparsebayes.engine import process
from sparsebayes.estimators import _label_process as labels
from sparsebayes.estimators._kernel_design import centred_design
from sparsebayes.estimators._process import FOLDS, ProcessDesign, folds

dense_regressor, dense_classifier = (partial(cls, vectors="all") for cls in (RVMRegressor, RVMClassifier))


def smooth(n, seed=0, noise=0.0):
    """A smooth function of all of four inputs in units of their own, as simulations are."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1, 1, (n, 4))
    y = np.sin(2 * Z[:, 0] + Z[:, 1]) + Z[:, 2] * Z[:, 3] + 0.5 * Z[:, 1] ** 2 + noise * rng.standard_normal(n)
    return Z * [1.0, 1e3, 1e-2, 5.0] + [0.0, 400.0, 1.0, -3.0], y


def sinc(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (n, 1))
    return X, np.sinc(X[:, 0] / np.pi) + noise * rng.standard_normal(n)


# --- the process ---


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_it_is_the_gaussian_process_of_scikit_learn(standardize, intercept, monkeypatch):
    monkeypatch.setattr(process, "LEFT_OUT", 1e-12)  # every row is a centre
    X, y = sinc(30, noise=0.2)
    new = np.linspace(-14, 14, 20)[:, None]
    model = dense_regressor(gamma=0.3, standardize=standardize, fit_intercept=intercept).fit(X, y)
    signal, noise = model._fits[0].left_out.signal, model.noise_variance_
    seen = StandardUnits.by_deviation(X, np.ones(30)) if standardize else lambda X: X
    kernel = ConstantKernel(signal) * RBF(np.sqrt(0.5 / 0.3))
    broad = 1e6 * y.var()  # nearly a flat prior of the mean
    kernel = kernel + WhiteKernel(noise) + (ConstantKernel(broad) if intercept else ConstantKernel(1e-12))
    theirs = GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-14).fit(seen(X), y)
    mean, std = theirs.predict(seen(new), return_std=True)
    ours, own = model.predict(new, return_std=True)
    assert_allclose(ours, mean, atol=1e-4 * y.std())
    assert_allclose(np.sqrt(own**2 - model.excess_variance_), std, rtol=1e-4)
    level = 0.5 * np.log(2 * np.pi * broad) if intercept else 0.0  # the flat prior has density one
    assert model.log_evidence_ == pytest.approx(theirs.log_marginal_likelihood_value_ + level, abs=1e-3)


def test_far_from_all_rows_the_variance_is_that_of_the_prior():
    X, y = sinc(80)
    model = dense_regressor(standardize=False).fit(X, y)
    fit = model._fits[0]
    _, std = model.predict([[1e3], [-1e3]], return_std=True)
    level = fit.latent_variance(np.array([[1e3]]))[0] - fit.left_out.signal  # of the intercept there
    assert 0 < level < fit.left_out.signal
    assert_allclose(std**2, fit.left_out.signal + level + model.noise_variance_ + model.excess_variance_)


def test_fewer_centres_than_rows_predict_the_same(monkeypatch):
    X, y = sinc(300, noise=0.2)
    few = dense_regressor().fit(X, y)
    monkeypatch.setattr(process, "LEFT_OUT", 1e-9)
    whole = dense_regressor().fit(X, y)
    assert len(few.dual_coef_) < 0.5 * len(whole.dual_coef_)
    new = np.linspace(-10, 10, 50)[:, None]
    (mean, std), (whole_mean, whole_std) = (model.predict(new, return_std=True) for model in (few, whole))
    unknown = np.sqrt(whole_std**2 - whole.noise_variance_ - whole.excess_variance_)
    assert np.abs(mean - whole_mean).mean() < 0.3 * unknown.mean()
    assert_allclose(std, whole_std, rtol=0.1)


def test_what_is_published_is_what_predicts():
    X, y = smooth(60, noise=0.1)
    model = dense_regressor().fit(X, y)
    assert_array_equal(model.relevance_vectors_, X[model.relevance_indices_])
    K = model._fits[0].basis.kernel(X, model.relevance_vectors_)
    assert_allclose(K @ model.dual_coef_ + model.intercept_, model.predict(X), atol=1e-7 * y.std())
    assert ((model.relevance_ >= 0) & (model.relevance_ <= 1)).all()
    assert model.converged_
    mean, cov = model.predict(X, return_cov=True)
    assert_allclose(np.sqrt(np.diag(cov)), model.predict(X, return_std=True)[1], rtol=1e-8)
    draws = model.sample_y(X[:3], 20_000, random_state=0)
    assert_allclose(draws.mean(axis=1), mean[:3], atol=0.02 * y.std())
    assert_allclose(draws.std(axis=1), np.sqrt(np.diag(cov))[:3], rtol=0.03)


def test_intervals_cover():
    shares = []
    for seed in range(5):
        X, y = smooth(150, seed, noise=0.2)
        new, y_new = smooth(400, 100 + seed, noise=0.2)
        low, high = dense_regressor().fit(X, y).predict_interval(new).T
        shares.append(np.mean((low <= y_new) & (y_new <= high)))
    assert 0.86 < np.mean(shares) < 0.94


@pytest.mark.parametrize("model", [dense_regressor(), dense_classifier()], ids=str)
def test_outputs_and_classes_are_processes_of_their_own(model):
    X, y = smooth(80, noise=0.1)
    if isinstance(model, RVMClassifier):
        model.fit(X, np.digitize(y, np.quantile(y, [0.4, 0.7])))
        assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        assert model.score(X, np.digitize(y, np.quantile(y, [0.4, 0.7]))) > 0.85
    else:
        model.fit(X, np.column_stack([y, np.full(80, 3.0), -y]))
        assert_allclose(model.predict(X)[:, 1], 3.0)
        assert_allclose(model.predict(X)[:, 2], -model.predict(X)[:, 0], atol=1e-6)
    assert len(model._fits) == 3


def test_integer_weights_are_repeated_rows(rng):
    X, y = smooth(50, noise=0.2)
    weight = rng.integers(0, 4, 50)
    again = np.repeat(np.arange(50), weight)
    for model, target in ((dense_regressor(), y), (dense_classifier(), y > np.median(y))):
        weighted, repeated = (
            clone(model).fit(X, target, sample_weight=weight),
            clone(model).fit(X[again], target[again]),
        )
        assert weighted.gamma_ == pytest.approx(repeated.gamma_, rel=1e-6)
        predict = "predict_proba" if isinstance(model, RVMClassifier) else "predict"
        assert_allclose(getattr(weighted, predict)(X), getattr(repeated, predict)(X), atol=1e-4)


# --- refusals ---


def test_what_is_no_gaussian_process_is_refused():
    X, y = smooth(40)
    with pytest.raises(ValueError, match=r"vectors='all' needs a kernel that can be evaluated.*precomputed"):
        dense_regressor(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="vectors='all' needs a positive definite kernel"):
        dense_regressor(kernel=lambda X, Z: -(X @ Z.T)).fit(X, y)
    with pytest.raises(ValueError, match="needs inference='laplace'"):
        dense_classifier(inference="variational").fit(X, y > 0)
    with pytest.raises(ValueError, match="one-vs-rest"):
        dense_classifier(multi_class="softmax").fit(X, np.digitize(y, [-0.3, 0.3]))


@pytest.mark.parametrize("cls", [RVMRegressor, RVMClassifier])
def test_auto_is_sparse_where_there_is_no_gaussian_process(cls):
    X, y = smooth(40, noise=0.1)
    y = y > 0 if cls is RVMClassifier else y
    for kernel in ("precomputed", lambda X, Z: -(X @ Z.T)):
        inputs = X / X.std(axis=0)
        inputs = inputs @ inputs.T if kernel == "precomputed" else inputs
        auto, sparse = (cls(kernel=kernel, vectors=vectors).fit(inputs, y) for vectors in ("auto", "sparse"))
        assert_array_equal(auto.dual_coef_, sparse.dual_coef_)


@pytest.mark.parametrize("vectors", ["auto", "sparse", "all"])
def test_classes_of_rows_that_are_all_the_same_have_their_frequencies(vectors):
    y = np.arange(30) % 3 > 0
    model = RVMClassifier(vectors=vectors).fit(np.ones((30, 2)), y)
    assert_allclose(model.predict_proba([[1.0, 1.0]])[0, 1], 2 / 3, atol=0.02)


# --- the choice ---


def keeps_all(model):
    """Whether the model is a Gaussian process."""
    return all(fit.left_out is not None for fit in model._fits)


def test_a_smooth_function_without_noise_is_a_gaussian_process():
    X, y = smooth(150)
    new, y_new = smooth(500, 1)
    auto, sparse = (RVMRegressor(vectors=vectors).fit(X, y) for vectors in ("auto", "sparse"))
    assert keeps_all(auto)
    errors = [np.mean((model.predict(new) - y_new) ** 2) for model in (auto, sparse)]
    assert errors[0] < 0.7 * errors[1]
    assert_array_equal(auto.dual_coef_, dense_regressor().fit(X, y).dual_coef_)


def bumps(n, seed=0):
    """Two narrow bumps on nothing, with noise: few vectors say it all."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (n, 1))
    y = 3 * np.exp(-4 * (X[:, 0] - 2) ** 2) - 2 * np.exp(-4 * (X[:, 0] + 5) ** 2)
    return X, y + 0.1 * rng.standard_normal(n)


def test_a_function_of_few_bumps_is_sparse():
    X, y = bumps(200)
    auto = RVMRegressor().fit(X, y)
    assert not keeps_all(auto)
    assert_array_equal(auto.dual_coef_, RVMRegressor(vectors="sparse").fit(X, y).dual_coef_)


@pytest.mark.parametrize("vectors", ["auto", "sparse", "all"])
def test_a_target_without_spread_is_its_mean(vectors, rng):
    X = rng.standard_normal((60, 2))
    model = RVMRegressor(vectors=vectors).fit(X, np.full(60, 2.0))
    assert_allclose(model.predict(X), 2.0)
    assert len(model.dual_coef_) == 0


# --- folds ---


def design_of(X):
    ones = np.ones(len(X))
    kernel = StandardisedKernel(partial(rbf, gamma=0.1), StandardUnits.by_deviation(X, ones))
    return centred_design(X, ones, ones > 0, None, None).at(kernel)


def fold_numbers(X, weight, most=1000, labels=None):
    numbers = np.full(len(X), -1)
    for k, (train, test) in enumerate(folds(design_of(X), weight, most, labels)):
        assert not set(train) & set(test)
        assert (numbers[test] == -1).all()
        numbers[test] = k
    return numbers


def test_folds_are_those_of_the_data_and_not_of_their_order(rng):
    X, _ = smooth(53)
    rows, columns = rng.permutation(53), rng.permutation(4)
    numbers = fold_numbers(X, np.ones(53))
    assert sorted(np.bincount(numbers)) == [10, 10, 11, 11, 11]
    assert_array_equal(fold_numbers(X[rows], np.ones(53)), numbers[rows])
    assert_array_equal(fold_numbers(X[:, columns], np.ones(53)), numbers)
    assert_array_equal(fold_numbers(X * [3.0, 0.7, 1e3, 1.1], np.ones(53)), numbers)


def test_equal_rows_are_in_one_fold(rng):
    X, _ = smooth(20)
    again = np.repeat(np.arange(20), 3)
    numbers = fold_numbers(X[again], np.ones(60))
    assert (numbers.reshape(20, 3) == numbers[::3, None]).all()
    assert_array_equal(numbers[::3], fold_numbers(X, np.full(20, 3.0)))


def test_each_fold_has_every_class(rng):
    X, y = smooth(60)
    labels = (y > np.quantile(y, 0.8)).astype(float)
    numbers = fold_numbers(X, np.ones(60), labels=labels)
    assert (np.bincount(numbers[labels == 1], minlength=FOLDS) >= 2).all()


def test_large_tables_are_judged_by_some_of_their_rows():
    X, _ = smooth(100)
    numbers = fold_numbers(X, np.ones(100), most=20)
    assert_array_equal(np.bincount(numbers[numbers >= 0]), [4] * 5)


# --- files ---


@pytest.mark.parametrize("model", [dense_regressor(), dense_classifier(), RVMRegressor()], ids=str)
def test_stored_models_predict_the_same(model, tmp_path):
    X, y = smooth(60)
    fitted = clone(model).fit(X, y > 0 if isinstance(model, RVMClassifier) else y)
    assert keeps_all(fitted)
    save(fitted, tmp_path / "model.skops")
    for again in (load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(fitted))):
        if isinstance(model, RVMClassifier):
            assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
        else:
            assert_array_equal(
                np.stack(again.predict(X, return_std=True)), np.stack(fitted.predict(X, return_std=True))
            )


# --- processes for labels ---


def blobs(n=150, seed=0):
    """Four classes that overlap, of different sizes."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    return np.array([[0, 0], [2, 0], [0, 2], [2, 2]])[codes] + rng.standard_normal((n, 2)), codes


def test_names_of_classes_do_not_matter():
    X, codes = blobs()
    one = RVMClassifier().fit(X, np.array(list("abcd"))[codes])
    other = RVMClassifier().fit(X, np.array(list("dacb"))[codes])
    order = np.searchsorted(other.classes_, np.array(list("dacb")))
    assert_allclose(other.predict_proba(X)[:, order], one.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("best", ["sparse", "odds", "squares"])
def test_held_out_labels_choose_the_model_of_all_classes(best, monkeypatch):
    X, codes = blobs()
    judged = labels.Judged({best: 1.0}, [])
    monkeypatch.setattr(labels.Rivals, "judge", lambda *_: judged)
    model = RVMClassifier().fit(X, codes)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, codes) > 0.6
    roots = {id(fit.root) for fit in model._fits}
    assert len(roots) == (1 if best == "squares" else 4)  # least squares: one covariance for all classes


def test_each_rival_is_judged_by_rows_it_has_not_seen():
    """Labels by chance: no rival may find them more probable than their frequency says, but for the noise of a sum."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    codes = np.random.default_rng(1).integers(0, 2, 200)
    design = centred_design(X, np.ones(200), np.ones(200, bool), None, None).at(partial(rbf, gamma=1.0))
    rivals = labels.Rivals(
        labels.LabelProcess(ProcessDesign.of(design, 10.0, 200), np.array([1.0, 4.0]), True),
        labels.LabelSquares.of(design, 10.0, True),
    )
    judged = rivals.judge(codes, np.ones(200), [1])
    assert set(judged.log_probability) == {"odds", "squares"}
    assert len(judged.variances) == FOLDS
    assert all(-1.3 * 200 * np.log(2) < each < -0.97 * 200 * np.log(2) for each in judged.log_probability.values())


def test_least_squares_tell_two_spheres_apart_better_than_log_odds(monkeypatch):
    """Breiman's twonorm, 200 rows, means of four draws: the default has chosen the labels."""
    errors = {"squares": 0.0, "odds": 0.0}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2, 2200)
        X = (2 * codes - 1)[:, None] * 2 / np.sqrt(20) + rng.standard_normal((2200, 20))
        with monkeypatch.context() as only:
            only.setattr(labels.Rivals, "judge", lambda *_: labels.Judged({"odds": 1.0}, []))
            errors["odds"] += 0.25 - 0.25 * RVMClassifier().fit(X[:200], codes[:200]).score(X[200:], codes[200:])
        errors["squares"] += 0.25 - 0.25 * RVMClassifier().fit(X[:200], codes[:200]).score(X[200:], codes[200:])
    assert errors["squares"] < errors["odds"] - 0.003
