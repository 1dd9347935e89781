"""ARDRegressor(multi_output="joint"): outputs that share their features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes import ARDRegressor, load, save


def draw(seed=0, n=100, d=500, n_true=10, T=5, snr=1.0):
    """Shared features with weights ±1 and noise of this signal-to-noise ratio in every output."""
    rng = np.random.default_rng([seed, T])
    X, W = rng.standard_normal((n, d)), np.zeros((d, T))
    W[:n_true] = rng.choice([-1, 1], (n_true, T))
    signal = X @ W
    return X, signal + signal.std(axis=0) / np.sqrt(snr) * rng.standard_normal((n, T)), W


def joint(**parameters):
    return ARDRegressor(multi_output="joint", **parameters)


def f1(found, n_true=10):
    hits = np.isin(found, np.arange(n_true)).sum()
    return 2 * hits / (len(found) + n_true)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("snr", "least"), [(1.0, 0.93), (2.0, 0.98)])
def test_shared_features_are_found_where_single_outputs_miss_them(snr, least, shared):
    """At a ratio of one a true weight has a z-score of 3.2 in each output; the evidence itself prefers to miss some."""
    ours, alone = [], []
    for seed in range(8):
        X, Y, _ = draw(seed, snr=snr)
        model = joint(shared_noise=shared).fit(X, Y)
        ours.append(f1(model.active_[0]))
        for other in model.active_:
            assert_array_equal(other, model.active_[0])
        alone += [f1(each) for each in ARDRegressor(average=False).fit(X, Y[:, :2]).active_]
    assert np.mean(ours) >= least
    assert np.mean(alone) < 0.3


def test_many_outputs():
    X, Y, W = draw(T=100, d=300, n_true=20)
    model = joint().fit(X, Y)
    assert_array_equal(model.active_[0], np.arange(20))
    # With n rows a least-squares weight of one has the standard error σ/√n, here √20/10.
    assert np.sqrt(((model.coef_ - W.T)[:, :20] ** 2).mean()) < 1.2 * np.sqrt(20) / 10


def test_outputs_in_other_units_and_places():
    X, Y, _ = draw(d=50)
    scale, shift = np.array([1e-6, 1.0, 30.0, 1e6, -2.0]), np.array([0.0, 3.0, 1e4, -1e6, 7.0])
    order, columns = np.array([3, 0, 4, 1, 2]), np.random.default_rng(0).permutation(50)
    here = joint().fit(X, Y)
    there = joint().fit(100 * X[:, columns], (Y * scale + shift)[:, order])
    assert_array_equal(np.sort(columns[there.active_[0]]), here.active_[0])
    assert_allclose(there.predict(100 * X[:, columns]), (here.predict(X) * scale + shift)[:, order], rtol=1e-4)
    assert_allclose(there.noise_variance_, (here.noise_variance_ * scale**2)[order], rtol=1e-4)
    # The tolerance is that of the search, 1e-6 nats, over a curvature of n/2 in each log noise.
    assert there.log_evidence_.sum() == pytest.approx(
        here.log_evidence_.sum() - 99 * np.log(np.abs(scale)).sum(), abs=1e-3
    )


def test_a_weight_is_a_repeated_row():
    X, Y, _ = draw(n=60, d=20, n_true=3)
    weight = np.random.default_rng(1).integers(0, 3, 60)
    repeated = joint().fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))
    weighted = joint().fit(X, Y, sample_weight=weight)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(weighted.log_evidence_, repeated.log_evidence_, rtol=1e-8)


def test_intervals_hold_new_values():
    X, Y, W = draw(n=200, d=100)
    fresh, noise = np.random.default_rng(5).standard_normal((4000, 100)), np.sqrt(10.0)
    new = fresh @ W + noise * np.random.default_rng(6).standard_normal((4000, 5))
    model = joint().fit(X, Y)
    ends = model.predict_interval(fresh, coverage=0.9)
    inside = ((ends[..., 0] <= new) & (new <= ends[..., 1])).mean(axis=0)
    # One output's noise level is uncertain by a twentieth: 0.9 ± 0.02, and a margin.
    assert_allclose(inside, 0.9, atol=0.06)
    assert inside.mean() == pytest.approx(0.9, abs=0.03)
    mean, std = model.predict(fresh, return_std=True)
    assert mean.shape == std.shape == (4000, 5)
    assert model.sample_y(fresh[:3], 7, random_state=0).shape == (3, 5, 7)


def test_an_output_of_one_value_says_nothing():
    X, Y, _ = draw(d=50)
    model = joint().fit(X, np.column_stack([Y, np.full(100, 3.0)]))
    assert_allclose(model.coef_[:5], joint().fit(X, Y).coef_, rtol=1e-9)
    assert model.intercept_[5] == 3.0
    assert not model.coef_[5].any()
    assert not joint().fit(X, np.ones((100, 2))).coef_.any()


def test_one_column_and_one_output_are_the_usual_model():
    X, Y, _ = draw(d=50)
    usual = ARDRegressor(average=False).fit(X, Y[:, 0])
    assert_allclose(joint().fit(X, Y[:, :1]).coef_[0], usual.coef_, atol=1e-4 * np.abs(usual.coef_).max())
    assert_array_equal(joint(average=False).fit(X, Y[:, 0]).coef_, usual.coef_)


def test_no_intercept():
    X, Y, _ = draw(d=50)
    model = joint(fit_intercept=False).fit(X, Y)
    assert_array_equal(model.intercept_, 0)
    assert_array_equal(model.active_[0], np.arange(10))


def test_the_price_is_asked_of_all_outputs_together():
    X, Y, _ = draw(d=50)
    model = joint().fit(X, Y)
    assert model.min_gain_ == pytest.approx(np.log(50))
    assert (model.gain_[0, :10] > model.min_gain_).all()
    assert_array_equal(model.gain_[0], model.gain_[3])
    dear = joint(min_gain={0: 1e6}).fit(X, Y)
    assert_array_equal(dear.active_[0], np.arange(1, 10))


def test_it_is_saved(tmp_path):
    X, Y, _ = draw(d=30)
    model = joint().fit(X, Y)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.multi_output == "joint"


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"average": True}, "multi_output='independent'"),
        ({"noise": "student"}, "noise='gaussian'"),
        ({"solver": "em"}, "solver"),
        ({"a": 1.0}, "a=b=c=d=0"),
        ({"intercept_prior": "ard"}, "intercept_prior='flat'"),
        ({"warm_start": True}, "warm_start=False"),
    ],
)
def test_what_does_not_go_together_is_named(parameters, named):
    X, Y, _ = draw(d=10)
    with pytest.raises(ValueError, match=named):
        joint(**parameters).fit(X, Y)


def test_a_fit_that_is_cut_short_warns():
    X, Y, _ = draw(d=50)
    with pytest.warns(UserWarning, match="max_iter"):
        model = joint(max_iter=2).fit(X, Y)
    assert not model.converged_
