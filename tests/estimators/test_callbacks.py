"""scikit-learn's callbacks are told of every step of every estimator, and may ask a fit to stop."""

import copy
import pickle
import threading
import warnings

import numpy as np
import pytest
from forms import averages
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from sparsebayes import (
    ARDRegressor,
    DRVMRegressor,
    RVMClassifier,
    RVMRegressor,
    StabilitySelector,
    VBLogisticRegression,
)
from sparsebayes.estimators._callbacks import STATE, unwatched

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on")


class Recorder:
    """Writes down what it is told; asks to stop, or fails, when so many steps have ended."""

    def __init__(self, stop_at=None, fail_at=None):
        self.stop_at, self.fail_at = stop_at, fail_at
        self.open, self.ended, self.calls, self.infos = [], [], [], []
        self.model = None

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.has_data = X is not None and y is not None
        self.open.append(context)

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None, metadata=None):
        assert self.open.pop() is context  # tasks are nested
        self.ended.append(context.task_name)
        if hasattr(context, "info"):
            self.infos.append(context.info)
        self.metadata = metadata
        if context.parent is None:
            self.model = fitted_estimator
        n_steps = self.ended.count("step")
        if self.fail_at is not None and n_steps >= self.fail_at:
            raise RuntimeError("the callback fails")
        return self.stop_at is not None and n_steps >= self.stop_at


class Propagated(Recorder):
    max_propagation_depth = None


@pytest.fixture
def three_classes(make_data):
    X, y = make_data()
    return X, np.digitize(y, [-1, 1])


# --- hooks ---


def test_every_step_is_a_task(quick_default, data_for):
    X, y = data_for(quick_default, n=40, d=4)
    told = Recorder()
    model = clone(quick_default).set_callbacks(told).fit(X, y)
    assert told.calls == ["setup", "teardown"]
    assert told.has_data
    assert not told.open
    assert told.ended[-1] == "fit"
    assert told.ended.count("fit") == 1
    # One more than there are steps: what is left to do after the last.
    assert told.ended.count("step") == len(told.infos) + 1 == len(told.ended) - 1
    assert len(told.infos) >= model.n_iter_
    # Chains over models have no objective, but a standard error.
    assert all(np.isfinite(info.change if info.action == "average" else info.objective) for info in told.infos)
    assert averages(quick_default) == any(info.action == "average" for info in told.infos)
    assert_array_equal(told.model.predict(X), model.predict(X))
    assert_array_equal(clone(quick_default).set_callbacks().fit(X, y).predict(X), model.predict(X))


def test_numbers_of_the_steps_are_those_of_the_path(make_data):
    told = Recorder()
    model = ARDRegressor(solver="fixed-point", min_gain=0).set_callbacks(told).fit(*make_data())
    path = [info.objective for info in told.infos]
    # The path is in the data's units, the steps are in those in which y has variance one: a constant apart.
    assert_array_equal(np.argsort(path[: model.n_iter_]), np.argsort(model.evidence_path_[: len(path)]))


def test_sample_weight_is_handed_on(make_data):
    X, y = make_data()
    told, weight = Recorder(), np.ones(len(y))
    ARDRegressor().set_callbacks(told).fit(X, y, weight)
    assert told.metadata["sample_weight"] is weight
    ARDRegressor().set_callbacks(told).fit(X, y=y)
    assert told.metadata is None


def test_classes_one_after_the_other_and_at_the_same_time(three_classes):
    X, y = three_classes
    alone, together = Recorder(), Recorder()
    together.lock = threading.Lock()  # cannot be pickled, and need not be
    one = RVMClassifier(vectors="sparse").set_callbacks(alone).fit(X, y)
    many = RVMClassifier(vectors="sparse", n_jobs=2).set_callbacks(together).fit(X, y)
    assert len(alone.infos) > 3
    assert not together.infos  # steps in other processes are not told
    assert together.ended[-1] == "fit"
    assert not together.open
    assert_array_equal(one.predict(X), many.predict(X))


def test_repetitions_of_a_selection_are_tasks(make_data):
    told = Recorder()
    inner = Recorder()
    StabilitySelector(ARDRegressor(average=False).set_callbacks(inner), n_resamples=6).set_callbacks(told).fit(
        *make_data()
    )
    assert told.ended == ["repetition"] * 6 + ["repetitions", "fit"]
    assert inner.ended.count("fit") == 6  # clones of the estimator tell the same callback
    assert inner.calls == ["setup", "teardown"] * 6


# --- stopping ---


def test_a_callback_may_stop_a_fit(quick_default, data_for):
    X, y = data_for(quick_default, n=80, d=8)
    told, every = Recorder(stop_at=2), Recorder()  # no search ends in its second step
    clone(quick_default).set_callbacks(every).fit(X, y)
    model = clone(quick_default).set_callbacks(told)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    said = [str(item.message) for item in caught if issubclass(item.category, ConvergenceWarning)]
    (said,) = [each for each in said if "chains" not in each]  # short ones may not agree
    assert "a callback stopped the fit at step 2" in said
    assert "max_iter" not in said
    assert not model.converged_
    assert len(told.infos) < len(every.infos)
    assert np.isfinite(model.decision_function(X) if is_classifier(model) else model.predict(X, return_std=True)).all()
    assert np.isfinite(model.log_evidence_)


@pytest.mark.parametrize(
    "model",
    [ARDRegressor(), RVMRegressor(vectors="sparse"), RVMClassifier(vectors="sparse"), VBLogisticRegression()],
    ids=str,
)
def test_a_fit_that_is_stopped_at_once_takes_one_step(model, data_for):
    told = Recorder(stop_at=1)
    with pytest.warns(ConvergenceWarning, match="at step 1"):
        model.set_callbacks(told).fit(*data_for(model))
    # Without a round of the chains there would be no average.
    assert [info.action == "average" for info in told.infos] == [False, True][: 1 + averages(model)]


def test_starts_that_were_not_made_have_no_score(make_data):
    X, y = make_data(n=30)
    with pytest.warns(ConvergenceWarning, match="a callback stopped"):
        model = DRVMRegressor(n_restarts=3).set_callbacks(Recorder(stop_at=2)).fit(X, y)
    assert_array_equal(np.isnan(model.restart_scores_), [False, True, True])


def test_without_a_stop_the_remedy_is_max_iter(make_data):
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        ARDRegressor(max_iter=1).set_callbacks(Recorder()).fit(*make_data())


# --- faults ---


@pytest.mark.parametrize("before", [True, False], ids=["fitted before", "never fitted"])
def test_a_failing_callback_leaves_no_fit_and_is_torn_down(quick_default, data_for, before):
    X, y = data_for(quick_default, n=40, d=4)
    model = clone(quick_default)
    if before:
        model.fit(X, y)
    told = Recorder(fail_at=1)
    model.set_callbacks(told)
    with pytest.raises(RuntimeError, match="the callback fails"):
        model.fit(X, y)
    assert told.calls == ["setup", "teardown"]
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert set(vars(model)) == set(quick_default.get_params()) | {"_skl_callbacks"}
    assert model.set_callbacks().fit(X, y).n_features_in_ == X.shape[1]


def test_wrong_data_and_parameters_leave_no_task_open(make_data):
    X, y = make_data()
    told = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        RVMRegressor().set_callbacks(told).fit(np.full_like(X, np.nan), y)
    with pytest.raises(ValueError, match="tol"):
        RVMRegressor(tol=-1).set_callbacks(told).fit(X, y)
    with pytest.raises(ValueError, match="requires y"):
        RVMRegressor().set_callbacks(told).fit(X)
    # A wrong parameter does not come so far.
    assert told.calls == ["setup", "teardown", "setup", "teardown"]


def test_an_interrupt_in_a_pipeline_leaves_its_context_to_it(make_data):
    told = Propagated(fail_at=1)
    pipeline = make_pipeline(StandardScaler(), RVMRegressor()).set_callbacks(told)
    with pytest.raises(RuntimeError, match="the callback fails"):
        pipeline.fit(*make_data())
    assert told.calls == ["setup", "teardown"]
    assert not set(vars(pipeline[-1])) & set(STATE)


# --- scikit-learn's own ---


@pytest.fixture
def bar(capsys):
    pytest.importorskip("rich", reason="scikit-learn's bar is drawn by rich")
    return callback.ProgressBar(max_propagation_depth=None)


def test_progress_bar(quick_default, data_for, bar, capsys):
    model = clone(quick_default).set_callbacks(bar).fit(*data_for(quick_default, n=40, d=4))
    assert model.n_features_in_
    assert f"{type(quick_default).__name__} - fit" in capsys.readouterr().out


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_bar_of_a_search_over_a_pipeline(make_data, bar, capsys, n_jobs):
    X, y = make_data()
    pipeline = make_pipeline(StandardScaler(), RVMRegressor())
    search = GridSearchCV(pipeline, {"rvmregressor__gamma": [0.1, 1.0]}, cv=2, n_jobs=n_jobs).set_callbacks(bar)
    search.fit(X, y)
    told = capsys.readouterr().out
    assert "GridSearchCV - fit" in told
    assert "RVMRegressor - fit" in told
    assert not set(vars(search.best_estimator_[-1])) & set(STATE)
    plain = GridSearchCV(pipeline, {"rvmregressor__gamma": [0.1, 1.0]}, cv=2).fit(X, y)
    assert_array_equal(search.predict(X), plain.predict(X))


def test_progress_bar_of_a_selection(make_data, bar, capsys):
    StabilitySelector(ARDRegressor(average=False), n_resamples=4).set_callbacks(bar).fit(*make_data())
    assert "StabilitySelector - repetitions" in capsys.readouterr().out


def test_progress_bar_with_classes_in_workers(three_classes, bar):
    assert RVMClassifier(n_jobs=2).set_callbacks(bar).fit(*three_classes).converged_


def test_scoring_monitor_gets_the_final_model(make_data):
    X, y = make_data()
    monitor = callback.ScoringMonitor(scoring="r2")
    model = ARDRegressor().set_callbacks(monitor).fit(X, y)
    (row,) = [row for row in monitor.get_logs().data if "r2" in row]
    assert row["r2"] == model.score(X, y)


# --- what else is done with estimators ---


def test_callbacks_survive_clone_and_pickle_but_nothing_of_a_fit_does(quick_default, data_for):
    told = Recorder()
    model = clone(quick_default).set_callbacks(told)
    assert clone(model)._skl_callbacks == [told]
    model.fit(*data_for(quick_default, n=40, d=4))
    assert set(vars(model)) & set(STATE) == {"_skl_callbacks"}
    told.open, told.model = [], None
    again = pickle.loads(pickle.dumps(model))
    assert again._skl_callbacks[0].ended == told.ended
    assert copy.deepcopy(model).converged_


def test_repr_is_that_without_callbacks(default):
    model = clone(default)
    assert repr(clone(default).set_callbacks(Recorder())) == repr(model)
    assert model.set_callbacks(Recorder())._repr_mimebundle_()["text/plain"] == repr(default)


class Checkpoint(Recorder):
    def on_fit_task_end(self, estimator, context):
        self.kept = None
        self.kept = pickle.dumps(estimator)


def test_a_model_in_the_making_can_be_pickled(make_data):
    told = Checkpoint()
    ARDRegressor().set_callbacks(told).fit(*make_data())
    assert pickle.loads(told.kept).get_params() == ARDRegressor().get_params()


def test_partial_fit_goes_on_as_before(make_data):
    X, y = make_data()
    model = VBLogisticRegression().set_callbacks(Recorder())
    assert model.partial_fit(X, y > 0, classes=[False, True]).n_samples_seen_ == len(X)


def test_unwatched_reaches_into_pipelines_and_searches(make_data):
    told = Recorder()
    inner = make_pipeline(StandardScaler(), RVMRegressor().set_callbacks(told)).set_callbacks(told)
    search = GridSearchCV(inner, {"rvmregressor__gamma": [1.0]}, cv=2).set_callbacks(told).fit(*make_data())
    bare = unwatched(search)
    for model in (bare, bare.estimator, bare.estimator[-1], bare.best_estimator_, bare.best_estimator_[-1]):
        assert not set(vars(model)) & set(STATE)
    assert search.best_estimator_[-1]._skl_callbacks == [told]  # the original has its own still
