"""Selection frequency over folds and random halves."""

import doctest
import io
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from sparsebayes import ARDRegressor, RVMRegressor, SparseLogisticRegression, StabilitySelector, selection_frequency

CHECKS = list(estimator_checks_generator(StabilitySelector(ARDRegressor(average=False), n_resamples=4)))


@pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
@pytest.mark.filterwarnings("ignore:No features were selected")
@pytest.mark.parametrize(("stability", "check"), CHECKS, ids=[getattr(c, "func", c).__name__ for _, c in CHECKS])
def test_scikit_learn_check(stability, check):
    check(stability)


class Noting(RegressorMixin, BaseEstimator):
    """Notes which rows it was given (their first column), and with which weights; keeps the features of `keep`."""

    seen = ()

    def __init__(self, keep=(0,)):
        self.keep = keep

    def fit(self, X, y, sample_weight=None):
        X = np.asarray(X)
        self.n_features_in_ = X.shape[1]
        self.feature_weights_ = np.zeros(X.shape[1])
        self.feature_weights_[list(self.keep)] = 1.0
        type(self).seen = (*type(self).seen, (X[:, 0].astype(int), np.asarray(y), sample_weight))
        return self


class NotingClasses(ClassifierMixin, Noting):
    pass


@pytest.fixture
def numbered():
    """Rows that carry their number in the first column."""
    Noting.seen = NotingClasses.seen = ()
    return np.column_stack([np.arange(30.0), np.ones(30)]), np.arange(30) % 3


def pairs(model):
    return list(zip(model.seen[::2], model.seen[1::2], strict=True))


def test_halves_come_in_complementary_pairs(numbered):
    selection_frequency(Noting(), *numbered, n_resamples=6, random_state=0)
    assert len(pairs(Noting)) == 3
    for (first, _, _), (second, _, _) in pairs(Noting):
        assert len(first) == len(second) == 15
        assert_array_equal(np.sort(np.concatenate([first, second])), np.arange(30))
    assert len({tuple(rows) for rows, _, _ in Noting.seen}) == 6


def test_halves_of_a_classifier_hold_all_classes_alike(numbered):
    selection_frequency(NotingClasses(), *numbered, n_resamples=6, random_state=0)
    for _, y, _ in NotingClasses.seen:
        assert_array_equal(np.bincount(y), [5, 5, 5])


@pytest.mark.parametrize("kind", [Noting, NotingClasses])
@pytest.mark.parametrize("cv", [None, GroupKFold(5)])
def test_groups_are_never_torn_apart(numbered, kind, cv):
    X, y = numbered
    groups = np.arange(30) // 3
    selection_frequency(kind(), X, y, cv=cv, groups=groups, n_resamples=4, random_state=0)
    for rows, _, _ in kind.seen:
        left_out = np.setdiff1d(np.arange(30), rows)
        assert not set(groups[rows]) & set(groups[left_out])
        assert len(left_out)


def test_row_wise_fit_parameters_follow_their_rows(numbered):
    X, y = numbered
    selection_frequency(Noting(), X, y, n_resamples=4, fit_params={"sample_weight": X[:, 0] + 0.5}, random_state=0)
    assert len(Noting.seen) == 4
    for rows, _, weight in Noting.seen:
        assert_array_equal(weight, rows + 0.5)


def test_feature_weights_decide_where_there_is_no_get_support(numbered):
    found = selection_frequency(Noting(keep=(1,)), *numbered, n_resamples=2)
    assert_array_equal(found.frequency, [0, 1])
    assert_array_equal(found.weight_mean, [0, 1])


def test_frequency_and_weights_are_those_of_fits_made_by_hand(make_data):
    X, y = make_data(60, 12, noise=3.0)
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    cv = KFold(5)
    selector = StabilitySelector(ARDRegressor(min_gain=1.0), cv=cv).fit(X, y, sample_weight=weight)
    fits = [ARDRegressor(min_gain=1.0).fit(X[rows], y[rows], weight[rows]) for rows, _ in cv.split(X)]
    coef = np.array([fit.coef_ for fit in fits])
    assert 0 < np.count_nonzero(coef == 0) < coef.size
    assert_array_equal(selector.selections_, coef != 0)
    assert_array_equal(selector.selection_frequency_, np.count_nonzero(coef, axis=0) / 5)
    assert_allclose(selector.weight_mean_, coef.mean(axis=0), rtol=1e-12, atol=1e-15)
    assert_allclose(selector.weight_std_, coef.std(axis=0), rtol=1e-10, atol=1e-15)
    assert_array_equal(selector.get_support(), selector.selection_frequency_ >= 0.6)


def test_one_seed_one_answer_however_many_jobs(make_data):
    X, y = make_data(noise=3.0)
    one = StabilitySelector(ARDRegressor(average=False), n_resamples=8, random_state=3).fit(X, y)
    with parallel_config("threading"):  # processes take seconds to start
        two = clone(one).set_params(n_jobs=2).fit(X, y)
    other = clone(one).set_params(random_state=4).fit(X, y)
    assert_array_equal(one.selections_, two.selections_)
    assert_allclose(one.weight_mean_, two.weight_mean_, rtol=1e-12)
    assert not np.array_equal(one.weight_mean_, other.weight_mean_)


def test_the_truth_is_selected_and_noise_is_not(make_data):
    X, y = make_data(200, 40)
    selector = StabilitySelector(ARDRegressor(average=False), n_resamples=20, random_state=0).fit(X, y)
    assert_array_equal(selector.get_support(indices=True), [0, 1, 2])
    assert_array_equal(selector.transform(X), X[:, :3])
    assert selector.set_params(threshold=1e-9).get_support()[:3].all()  # read when asked, as in SelectFromModel


def test_the_threshold_itself_is_enough(numbered):
    rows = np.arange(30)
    folds = [(rows, rows)] * 5
    selector = StabilitySelector(Noting(), cv=folds).fit(*numbered)
    selector.selections_[3:, 0] = False
    selector.selection_frequency_ = selector.selections_.mean(axis=0)
    assert_array_equal(selector.get_support(), [True, False])
    assert_array_equal(selector.set_params(threshold=0.61).get_support(), [False, False])


def test_classifiers_of_two_and_three_classes(make_data):
    X, y = make_data(150, 6)
    for classes in (np.digitize(y, [0.0]), np.array(["low", "mid", "top"])[np.digitize(y, [-1.5, 1.5])]):
        selector = StabilitySelector(SparseLogisticRegression(average=False), n_resamples=6, random_state=0).fit(
            X, classes
        )
        assert selector.get_support()[0]
        n_fits = 1 if len(np.unique(classes)) == 2 else 3
        assert selector.weight_mean_.shape == selector.weight_std_.shape == (n_fits, 6)


def test_several_outputs(make_data):
    X, y = make_data(100, 6, noise=0.1)
    selector = StabilitySelector(ARDRegressor(average=False), n_resamples=4, random_state=0).fit(
        X, np.column_stack([y, X[:, 5] + 0.1 * np.sin(np.arange(100))])
    )
    assert selector.weight_mean_.shape == (2, 6)
    assert selector.get_support()[[0, 5]].all()  # one by each output


def test_names_and_frames_pass_through(make_data):
    X, y = make_data()
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
    pipeline = make_pipeline(
        StandardScaler(), StabilitySelector(ARDRegressor(average=False), n_resamples=4, random_state=0)
    )
    kept = pipeline.set_output(transform="pandas").fit(frame, y).transform(frame)
    assert list(kept.columns) == ["gene 0", "gene 1", "gene 2"]
    assert list(pipeline[-1].feature_names_in_) == list(frame.columns)
    inner = make_pipeline(StandardScaler(), ARDRegressor(average=False))
    selector = StabilitySelector(inner, n_resamples=4, random_state=0).fit(frame, y)
    assert list(selector.get_feature_names_out()) == ["gene 0", "gene 1", "gene 2"]


def test_pickle_and_clone(make_data):
    X, y = make_data()
    selector = StabilitySelector(ARDRegressor(average=False), n_resamples=4, random_state=0).fit(X, y)
    assert_array_equal(pickle.loads(pickle.dumps(selector)).transform(X), selector.transform(X))
    assert not hasattr(clone(selector), "selection_frequency_")


def test_metadata_routing(make_data):
    X, y = make_data()
    weight = np.linspace(0.1, 3, len(y))
    plain = StabilitySelector(ARDRegressor(average=False), n_resamples=4, random_state=0).fit(
        X, y, sample_weight=weight
    )
    with config_context(enable_metadata_routing=True):
        inner = ARDRegressor(average=False).set_fit_request(sample_weight=True)
        routed = StabilitySelector(inner, n_resamples=4, random_state=0).fit(X, y, sample_weight=weight)
    assert_array_equal(routed.weight_mean_, plain.weight_mean_)


# --- the bound ---


def top(q):
    """An estimator that keeps the q features of largest covariance with y."""

    class Top(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            size = np.abs((X - X.mean(axis=0)).T @ (y - y.mean()))
            self.n_features_in_, self.coef_ = X.shape[1], np.where(size >= np.sort(size)[-q], size, 0.0)
            return self

    return Top()


def test_bound_on_false_selections_is_shah_and_samworths_and_holds_on_noise():
    found, bounds = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((40, 30)), rng.standard_normal(40)
        selector = StabilitySelector(top(6), n_resamples=20, random_state=seed).fit(X, y)
        found.append(selector.get_support().sum())
        bounds.append(selector.expected_false_selections())
        assert_allclose(bounds[-1], 6**2 / (30 * (2 * 0.6 - 1)))
    # Nothing matters and all features are alike, so every selection is a false one.
    assert 0 < np.mean(found) <= np.mean(bounds)


def test_bound_is_refused_where_it_does_not_hold(make_data):
    X, y = make_data()
    with pytest.raises(ValueError, match="cv"):
        StabilitySelector(ARDRegressor(average=False), cv=3).fit(X, y).expected_false_selections()
    with pytest.raises(ValueError, match="threshold"):
        StabilitySelector(ARDRegressor(average=False), n_resamples=2, threshold=0.5).fit(
            X, y
        ).expected_false_selections()


# --- complaints ---


@pytest.mark.parametrize(
    ("faulty", "error", "message"),
    [
        (StabilitySelector(ARDRegressor(average=False), n_resamples=3), ValueError, "n_resamples=3 must be even"),
        (StabilitySelector(ARDRegressor(average=False), threshold=1.5), ValueError, "'threshold' parameter"),
        (StabilitySelector("no estimator"), ValueError, "'estimator' parameter"),
        (StabilitySelector(RVMRegressor()), TypeError, "RVMRegressor keeps no features"),
        (StabilitySelector(make_pipeline(PolynomialFeatures(2), LinearRegression())), ValueError, "sees 91 inputs"),
    ],
    ids=["odd", "threshold", "estimator", "vectors", "other features"],
)
def test_complaints_name_the_fault(faulty, error, message, make_data):
    with pytest.raises(error, match=message):
        faulty.fit(*make_data())
    assert not hasattr(faulty, "n_features_in_")


def test_a_class_that_half_of_the_fits_lack_is_told(make_data):
    X, y = make_data()
    classes = np.digitize(y, [0.0])
    classes[7] = 5
    with (
        pytest.warns(UserWarning, match="least populated class"),
        pytest.raises(ValueError, match="a class is missing from some"),
    ):
        StabilitySelector(SparseLogisticRegression(average=False), n_resamples=4, random_state=0).fit(X, classes)


# --- progress (more of it in test_progress.py) ---


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nothing_is_shown_where_nobody_looks(make_data, capfd):
    StabilitySelector(ARDRegressor(average=False), n_resamples=4, verbose=1).fit(*make_data())
    assert capfd.readouterr() == ("", "")


def test_lines_are_shown_on_a_terminal_without_rich(make_data, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "stderr", Terminal())
    StabilitySelector(ARDRegressor(average=False), n_resamples=20, verbose=1).fit(*make_data())
    assert sys.stderr.getvalue().splitlines() == [f"selecting: {k} of 20" for k in range(2, 21, 2)]
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    StabilitySelector(ARDRegressor(average=False), n_resamples=4).fit(*make_data())
    assert quiet.getvalue() == ""


# --- documentation ---


def test_docstring_example_runs_and_names_everything(make_data):
    (example,) = [test for test in doctest.DocTestFinder().find(StabilitySelector, "it") if test.examples]
    assert doctest.DocTestRunner().run(example).failed == 0
    model = StabilitySelector(ARDRegressor(average=False), n_resamples=2).fit(*make_data())
    words = set(StabilitySelector.__doc__.replace(",", " ").split())
    assert not [key for key in vars(model) if not key.startswith("_") and key not in words]
