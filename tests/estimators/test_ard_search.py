"""`ARDRegressor`: what the original programs found, and where the searches end."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from single_models import assert_same_model, every_min_gain, every_solver, single_model
from sklearn.base import clone

from sparsebayes.engine.regression import SOLVERS

REFERENCE = Path(__file__).parent.parent / "reference"


TELLS_OF_THE_FLOOR = pytest.mark.filterwarnings("ignore:the noise variance reached its floor")


@pytest.fixture
def data(make_data):
    return make_data(offset=5.0)


# --- the originals ---


def original(name):
    """Training and test rows, and what the original program made of them."""
    content = json.loads((REFERENCE / f"{name}__tight.json").read_text())
    train, test = (np.loadtxt(REFERENCE / content["data"][part], delimiter=",") for part in ("train", "test"))
    return train[:, :-1], train[:, -1], test[:, :-1], content["results"]


@every_solver
@pytest.mark.parametrize("program", ["sparsebayes", "sb1rvm"])
def test_textbook_answer_is_that_of_the_originals(solver, program):
    X, y, X_new, expected = original(f"reg_lin_n100_d50__{program}_gaussian_lin_bias")
    model = single_model(solver=solver, min_gain=0, intercept_prior="ard", tol=1e-12).fit(X, y)
    fit = model._fits[0]
    assert_allclose(model.log_evidence_, expected["logML_final"] - len(y) / 2 * np.log(2 * np.pi), atol=1e-6)
    assert_array_equal(fit.columns, expected["relevant_0based"])
    # tol nats below the top the weights are √tol away, times how soft the weakest of them is.
    assert_allclose(fit.mean, expected["w"], atol=1e-5)
    assert_allclose(fit.noise_variance, expected["noise_var"], rtol=1e-5)
    assert_allclose(model.predict(X_new), expected["pred_mean"], atol=1e-5)
    assert_allclose(model.predict(X_new, return_std=True)[1] ** 2, expected["pred_var_derived"], rtol=1e-5)


@every_solver
def test_default_is_not_lost_where_the_original_overfits(solver):
    X, y, _, expected = original("reg_lin_n50_d100__sparsebayes_gaussian_lin_bias")
    assert len(expected["relevant_0based"]) == 46
    active = set(single_model(solver=solver).fit(X, y).active_)
    assert active >= {7, 27, 32, 35, 66}
    assert len(active) <= 8


@TELLS_OF_THE_FLOOR
@every_solver
def test_textbook_evidence_is_not_below_the_original_on_wide_data(solver):
    X, y, _, expected = original("reg_lin_n50_d100__sparsebayes_gaussian_lin_bias")
    model = single_model(solver=solver, min_gain=0, intercept_prior="ard").fit(X, y)
    assert model.log_evidence_ > expected["logML_final"] - len(y) / 2 * np.log(2 * np.pi) - 0.5


# --- search ---


@every_min_gain
def test_all_solvers_end_at_the_same_top(make_data, min_gain):
    X, y = make_data(100, 30, n_true=6)
    fits = [single_model(solver=solver, min_gain=min_gain, tol=1e-10).fit(X, y) for solver in SOLVERS]
    for model in fits[1:]:
        assert_array_equal(model.active_, fits[0].active_)
        # tol nats of a top of curvature about one: √tol in the parameters, tol itself in the evidence
        assert_allclose(model.log_evidence_, fits[0].log_evidence_, atol=1e-8)
        assert_allclose(model.coef_, fits[0].coef_, atol=1e-5)


def test_certificate_holds_and_the_path_ends_at_the_evidence(one_model, make_data):
    X, y = make_data(80, 40, n_true=6, offset=1.0)
    model = clone(one_model).fit(X, y)
    assert model.converged_
    assert model.optimality_gap_ <= model.tol
    assert model.n_iter_ == len(model.evidence_path_)
    # each entry is the objective before a step, and the last step found nothing left to do
    assert_allclose(model.evidence_path_[-1], model.log_evidence_, atol=1e-9)
    assert model.n_jittered_ == 0


@pytest.mark.filterwarnings("ignore:not converged")
def test_path_holds_the_evidence_of_each_model_on_the_way(make_data):
    X, y = make_data(150, 40, n_true=15)
    path = single_model(solver="sequential").fit(X, y).evidence_path_
    assert len(path) > 20
    for n_steps in range(1, len(path), 3):
        stopped = single_model(solver="sequential", max_iter=n_steps).fit(X, y)
        assert_allclose(stopped.log_evidence_, path[n_steps], rtol=1e-9)


@pytest.mark.parametrize("solver", ["em", "sequential"])
def test_textbook_evidence_never_falls(make_data, solver):
    X, y = make_data(80, 40, n_true=6)
    path = single_model(solver=solver, min_gain=0).fit(X, y).evidence_path_
    # a batch solver drops a weight when that moves the evidence by less than 1e-3 nats
    assert np.diff(path).min() > (-1e-3 if solver == "em" else -1e-9)


@every_solver
def test_certificate_is_what_a_further_step_would_bring(make_data, solver):
    X, y = make_data(80, 40, n_true=6)
    rough = single_model(solver=solver, min_gain=0, tol=0.1).fit(X, y)
    fine = single_model(solver=solver, min_gain=0, tol=1e-10).fit(X, y)
    assert 1e-10 < rough.optimality_gap_ <= 0.1
    assert fine.optimality_gap_ <= 1e-10
    assert fine.log_evidence_ >= rough.log_evidence_


@every_solver
@every_min_gain
def test_warm_start_continues_where_the_last_fit_ended(make_data, solver, min_gain):
    X, y = make_data(100, 40, n_true=6)
    model = single_model(solver=solver, min_gain=min_gain, warm_start=True, tol=1e-10).fit(X[:90], y[:90])
    first = model.n_iter_
    before = clone(model).fit(X[:90], y[:90])
    model.fit(X[:90], y[:90])
    assert model.n_iter_ < first / 2
    assert_same_model(model, before, rtol=1e-4)  # √tol, times how soft the weakest weight is
    model.fit(X, y)
    cold = clone(model).set_params(solver="sequential").fit(X, y)  # counts the same kind of step
    assert model.n_iter_ <= cold.n_iter_
    assert_allclose(model.log_evidence_, cold.log_evidence_, atol=1e-8)
    assert_array_equal(model.active_, cold.active_)


def test_warm_start_survives_a_feature_that_became_constant(data):
    X, y = data
    model = single_model(warm_start=True, tol=1e-12).fit(X, y)
    X[:, 0] = 1.0
    assert_same_model(model.fit(X, y), single_model(tol=1e-12).fit(X, y), rtol=1e-5)
    assert 0 not in model.active_


@every_solver
def test_wide_data_needs_no_square_matrix(make_data, solver):
    X, y = make_data(60, 5000, noise=0.1)
    tracemalloc.start()
    try:
        model = single_model(solver=solver).fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {0, 1, 2} <= set(model.active_)
    assert peak < 5000 * 5000 * 8 / 5, f"{peak / 2**20:.0f} MiB"


def test_default_finds_the_truth_and_the_textbook_keeps_more(make_data):
    exact = []
    for seed in range(10):
        X, y = make_data(300, 100, n_true=8, noise=1.0, seed=seed)
        truth = set(range(8))
        kept, textbook = (set(single_model(min_gain=gain).fit(X, y).active_) for gain in ("auto", 0))
        assert kept >= truth
        assert len(textbook) > 12
        exact.append(kept == truth)
    assert np.mean(exact) >= 0.8


def test_min_gain_is_a_price(make_data):
    X, y = make_data(100, 30, n_true=6)
    fits = [single_model(min_gain=price).fit(X, y) for price in (0, 1, np.log(30), 20, 1e6)]
    kept = [len(model.active_) for model in fits]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > kept[2] >= 6
    assert kept[-1] == 0
    assert_array_equal(fits[2].coef_, single_model().fit(X, y).coef_)
    # What is kept is worth its price: without any one of them the evidence falls by more.
    for j in fits[3].active_:
        fewer = single_model(min_gain=20).fit(np.delete(X, j, axis=1), y)
        assert fits[3].log_evidence_ - 20 * kept[3] > fewer.log_evidence_ - 20 * len(fewer.active_)


def test_get_support(data):
    model = single_model().fit(*data)
    assert_array_equal(model.get_support(indices=True), model.active_)
    assert_array_equal(np.flatnonzero(model.get_support()), model.active_)
    assert model.get_support().dtype == bool


@every_solver
def test_progress_goes_to_standard_error_only_when_asked_for(data, capsys, solver):
    single_model(solver=solver).fit(*data)
    assert capsys.readouterr() == ("", "")
    single_model(solver=solver, verbose=1).fit(*data)  # lives in terminals only
    assert capsys.readouterr() == ("", "")
    model = single_model(solver=solver, verbose=2).fit(*data)
    out, every = capsys.readouterr()
    assert out == ""
    assert len(every.splitlines()) >= model.n_iter_
    assert all("log evidence" in line for line in every.splitlines())


@TELLS_OF_THE_FLOOR
@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize(
    ("shape", "min_gain", "chosen"),
    [((60, 12), 0, "fixed-point"), ((60, 12), "auto", "sequential"), ((10, 30), 0, "sequential")],
)
def test_auto_chooses_as_documented(make_data, shape, min_gain, chosen):
    X, y = make_data(*shape)
    model = single_model(min_gain=min_gain, max_iter=100)
    names = ("auto", "fixed-point", "sequential")
    paths = {solver: model.set_params(solver=solver).fit(X, y).evidence_path_ for solver in names}
    auto = paths.pop("auto")
    assert [solver for solver, path in paths.items() if np.array_equal(path, auto)] == [chosen]


@pytest.mark.parametrize("columns", [[-1, 1], [0, 10**6], [0, 0]])
def test_warm_start_refuses_columns_that_are_not_there(columns, data):
    """A model may come from a file; the compiled search would write beyond its arrays."""
    model = single_model(warm_start=True).fit(*data)
    model._fits = [replace(model._fits[0], columns=np.array(columns), precision=np.ones(2))]
    with pytest.raises(ValueError, match="warm_start=False"):
        model.fit(*data)
