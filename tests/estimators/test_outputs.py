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
        model = joint(shared_noise=shared, average=False).fit(X, Y)
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
    here = joint(average=False).fit(X, Y)
    there = joint(average=False).fit(100 * X[:, columns], (Y * scale + shift)[:, order])
    assert_array_equal(np.sort(columns[there.active_[0]]), here.active_[0])
    assert_allclose(there.predict(100 * X[:, columns]), (here.predict(X) * scale + shift)[:, order], rtol=1e-4)
    assert_allclose(there.noise_variance_, (here.noise_variance_ * scale**2)[order], rtol=1e-4)
    # The tolerance is that of the search, 1e-6 nats, over a curvature of n/2 in each log noise.
    assert there.log_evidence_.sum() == pytest.approx(
        here.log_evidence_.sum() - 99 * np.log(np.abs(scale)).sum(), abs=1e-3
    )


@pytest.mark.parametrize("shared", [False, True])
def test_averages_in_other_units_and_places(shared):
    """The chains draw the same numbers. With one noise variance for all, the outputs have one unit."""
    X, Y, _ = draw(n=60, d=20, n_true=3)
    scale = 30.0 if shared else np.array([1e-6, 1.0, 30.0, 1e6, -2.0])
    shift = np.array([0.0, 3.0, -10.0, 1e6, 7.0])
    here = joint(shared_noise=shared).fit(X, Y)
    there = joint(shared_noise=shared).fit(100 * X + 3, Y * scale + shift)
    assert_allclose(there.inclusion_probability_, here.inclusion_probability_, rtol=1e-6)
    assert_allclose(there.predict(100 * X + 3), here.predict(X) * scale + shift, rtol=1e-6, atol=1e-8)
    assert_allclose(there.noise_variance_, here.noise_variance_ * scale**2, rtol=1e-6)


def test_averages_over_models():
    X, Y, W = draw(seed=1)
    model = joint().fit(X, Y)
    assert model.inclusion_probability_.shape == model.coef_std_.shape == (5, 500)
    for k in range(1, 5):
        assert_array_equal(model.inclusion_probability_[k], model.inclusion_probability_[0])
        assert_array_equal(model.n_features_posterior_[k], model.n_features_posterior_[0])
        assert [tuple(each.features) for each in model.credible_sets_[k]] == [
            tuple(each.features) for each in model.credible_sets_[0]
        ]
    single = joint(average=False).fit(X, Y)
    assert_array_equal(model.model_.coef_, single.coef_)
    assert not hasattr(single, "inclusion_probability_")
    # The single model misses three features here (its price is 6.9 nats, theirs 4 to 6), the average weighs them.
    assert len(model.active_[0]) > len(single.active_[0])
    assert np.linalg.norm(model.coef_ - W.T) < 0.9 * np.linalg.norm(single.coef_ - W.T)
    ends = model.coef_interval(0.9)
    inside = (ends[:, :10, 0] <= W.T[:, :10]) & (W.T[:, :10] <= ends[:, :10, 1])
    assert inside.mean() > 0.75  # 0.9 of 50, which are not independent, and a margin of three standard deviations


def test_averages_find_what_the_best_model_misses():
    """The prior odds of a feature are learned from the other nine; the price of a single model is the same for all."""
    found = [f1(joint().fit(*draw(seed)[:2]).active_[0]) for seed in (0, 1, 8)]
    assert np.mean(found) > 0.96  # the single models: 0.84


def test_averages_with_a_known_noise():
    X, Y, _ = draw(n=60, d=20, n_true=3)
    own = np.sqrt(3.0)  # of noise, at a ratio of one
    known = joint(noise_variance=own**2).fit(X, Y)
    assert_array_equal(known.noise_variance_, own**2)
    assert_array_equal(known.active_[0], [0, 1, 2])
    scaled = joint(noise_variance=own**2 * 1e6).fit(X, 1e3 * Y)
    assert_allclose(scaled.inclusion_probability_, known.inclusion_probability_, rtol=1e-6)
    # With one noise variance for all, learned from 300 numbers, all is nearly the same.
    learned = joint(shared_noise=True).fit(X, Y)
    assert_allclose(learned.noise_variance_, learned.noise_variance_[0])
    assert_allclose(learned.coef_, known.coef_, atol=0.1 * np.abs(known.coef_).max())


def test_many_outputs_are_not_averaged_by_default():
    """21 outputs of 1,000 features are more than the 20,000 numbers that a flip may change."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((20, 1000)), rng.standard_normal((20, 21))
    assert not hasattr(joint(max_iter=50).fit(X, Y), "inclusion_probability_")
    with pytest.warns(UserWarning, match="chains do not agree"):
        assert hasattr(joint(max_flips=20).fit(X, Y[:, :20]), "inclusion_probability_")


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
    for average in (True, False):
        usual = ARDRegressor(average=average).fit(X, Y[:, 0])
        found = joint(average=average).fit(X, Y[:, :1]).coef_[0]
        assert_allclose(found, usual.coef_, atol=1e-4 * np.abs(usual.coef_).max())
        assert_array_equal(joint(average=average).fit(X, Y[:, 0]).coef_, usual.coef_)


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
