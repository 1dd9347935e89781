"""What a fitted estimator says it has kept, and how it shows that in a notebook."""

from copy import copy
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from counting import is_counting
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from sparsebayes import ARDRegressor, RVMClassifier, SparseLogisticRegression
from sparsebayes.core.credible import CredibleSet
from sparsebayes.estimators import probable, set_text, short, size_text
from sparsebayes.estimators._kept import kept
from sparsebayes.estimators._notebook import kept_html

EVIL = "<script>alert('x')</script>"


# --- what was kept ---


def test_kept_is_what_the_public_attributes_say(estimator, data_for):
    model = clone(estimator).fit(*data_for(estimator))
    (part,) = kept(model)
    if hasattr(model, "feature_weights_"):
        assert_array_equal(part.index, np.flatnonzero(model.feature_weights_))
        assert_array_equal(part.weight, model.feature_weights_[part.index])
        assert part.what == "feature"
        return
    vectors = hasattr(model, "dual_coef_")
    index = model.relevance_indices_ if vectors else model.active_
    assert_array_equal(part.index, index)
    assert_allclose(part.weight, model.dual_coef_ if vectors else np.ravel(model.coef_)[index], rtol=1e-14)
    averaged = hasattr(model, "inclusion_probability_")
    assert averaged == (part.choice is not None)
    std = np.ravel(model.coef_std_)[index] if averaged else np.sqrt(np.diag(model.covariance_))
    assert_allclose(part.std, std, rtol=1e-9)
    assert part.what == ("vector" if vectors else "feature")
    if len(part.gain):
        assert_array_equal(part.gain, np.ravel(model.gain_))


def test_spread_of_more_weights_than_rows(make_data):
    """Where no square matrix is kept, and the covariance is a diagonal less a product."""
    X, y = make_data(30, 50)
    model = SparseLogisticRegression(prior="ridge").fit(X, y > 0)
    assert model._fits[0].sign < 0
    assert_allclose(kept(model)[0].std, np.sqrt(np.diag(model.covariance_)), rtol=1e-9)


SEVERAL = [
    SparseLogisticRegression(average=False),
    SparseLogisticRegression(prior="ridge"),
    SparseLogisticRegression(multi_class="softmax", min_gain=0, intercept_prior="ard"),
    RVMClassifier(),
    RVMClassifier(multi_class="softmax"),
]


@pytest.mark.parametrize("model", SEVERAL, ids=str)
def test_every_class_has_its_own_weights_and_spread(model, make_data):
    X, y = make_data(90, 4)
    model = clone(model).fit(X, np.array(["a", "b", "c"])[np.digitize(y, [-1, 1])])
    parts = kept(model)
    assert [part.output for part in parts] == ["a", "b", "c"]
    draws = model.sample_posterior(4000, random_state=0)[0]
    for k, part in enumerate(parts):
        mine = draws[k] if isinstance(draws, list) else draws[:, k, part.index]
        indices = model.relevance_indices_ if hasattr(model, "dual_coef_") else model.active_
        assert_array_equal(part.index, indices[k])
        spread = mine.std(axis=0)
        # 4,000 draws tell a mean to 1/√4000 = 1.6 % of the spread, and the spread to 1.1 %; four of these.
        assert_allclose(part.weight, mine.mean(axis=0), atol=0.065 * spread.max(initial=0.0))
        assert_allclose(part.std, spread, rtol=0.05)


def test_several_outputs_are_told_apart(make_data):
    X, y = make_data()
    model = ARDRegressor(average=False).fit(X, np.column_stack([y, X[:, 7] - y]))
    parts = kept(model)
    assert [part.output for part in parts] == ["output 0", "output 1"]
    for part, coef in zip(parts, model.coef_, strict=True):
        assert_array_equal(part.weight, coef[part.index])
        assert_array_equal(part.index, np.flatnonzero(coef))


def test_intervals_of_linear_weights_hold_the_truth(make_data):
    held = []
    for seed in range(40):
        X, y = make_data(40, 6, n_true=3, noise=1.0, seed=seed)
        (part,) = kept(ARDRegressor(min_gain=0.0).fit(X, y))
        low, high = part.interval(0.9).T
        true = np.append(np.array([2, -1.5, 1]), np.zeros(3))[part.index]
        held.append(((low <= true) & (true <= high))[part.index < 3])
    n = sum(map(len, held))
    share = np.concatenate(held).mean()
    assert abs(share - 0.9) < 4 * np.sqrt(0.09 / n)


def test_near_misses_are_dropped_and_nearest_first(make_data):
    X, y = make_data(60, 12, noise=2.0)
    worth = ARDRegressor().fit(X, y).gain_
    model = ARDRegressor(min_gain=1.2 * worth[2]).fit(X, y)
    (part,) = kept(model)
    near = part.near_misses()
    assert 2 in near
    assert not set(near) & set(model.active_)
    assert (part.gain[near] >= part.asked / 2).all()
    assert (np.diff(part.gain[near]) <= 0).all()


@pytest.mark.parametrize("intercept_prior", ["flat", "ard"])
def test_what_is_asked_is_the_solvers_price_of_one_feature_more(make_data, intercept_prior):
    X, y = make_data(40, 15, n_true=12, noise=0.2)
    model = ARDRegressor(min_gain=0.1, intercept_prior=intercept_prior).fit(X, y)
    n, k = 40 - (intercept_prior == "flat"), len(model._fits[0].columns)
    assert k >= 10
    total = [0.1 * size * n / (n - size) for size in (k, k + 1)]
    assert kept(model)[0].asked == pytest.approx(total[1] - total[0])
    assert kept(model)[0].asked > 1.5 * model.min_gain_  # a third of the rows' freedom is gone
    classifier = SparseLogisticRegression(average=False).fit(X, y > 0)
    assert kept(classifier)[0].asked == classifier.min_gain_


def test_without_a_price_nothing_is_missed(make_data):
    (part,) = kept(ARDRegressor(min_gain=0.0).fit(*make_data()))
    assert len(part.gain) == 12
    assert not len(part.near_misses())


# --- averaged models ---


def alike(n=80, seed=0):
    """Columns 1 and 2 are nearly the same, and both stand for a true one; column 0 matters beyond doubt."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    X[:, 2] = X[:, 1] + 0.05 * rng.standard_normal(n)
    return X, 2 * X[:, 0] + X[:, 1] + rng.standard_normal(n)


@pytest.fixture(scope="module")
def average_model():
    return ARDRegressor().fit(*alike())


def test_an_averaged_model_claims_what_is_sure(average_model):
    (part,) = kept(average_model)
    assert_array_equal(part.index, average_model.active_)
    assert_array_equal(part.index, [0])
    assert not len(part.gain)
    assert not len(part.near_misses())
    assert_array_equal(part.interval(0.8), average_model.coef_interval(0.8)[[0]])
    assert_array_equal(part.choice.probability, average_model.inclusion_probability_)
    assert_array_equal(part.choice.weight, average_model.coef_)
    probability = average_model.inclusion_probability_
    likely = part.choice.likely()
    assert_array_equal(np.sort(likely), np.flatnonzero((probability >= 0.5) & (probability < 0.9)))
    assert (np.diff(probability[likely]) <= 0).all()
    (pair,) = part.choice.several()
    assert set(pair.features.tolist()) == {1, 2}
    assert part.choice.stand_ins(1) == [2]
    assert part.choice.stand_ins(0) == part.choice.stand_ins(7) == []


def test_the_best_single_model_is_shown_as_one(average_model):
    (part,) = kept(average_model.model_)
    assert part.choice is None
    assert_array_equal(part.gain, average_model.gain_)
    assert "evidence (nats)" in kept_html(average_model.model_)


def test_the_number_of_features_has_its_quantiles(average_model):
    choice = kept(average_model)[0].choice
    sizes = np.array([0.04, 0.02, 0.4, 0.3, 0.2, 0.04])
    assert replace(choice, sizes=sizes).n_features() == (1, 3, 4)  # 0.04, 0.06, 0.46, 0.76, 0.96, 1
    assert replace(choice, sizes=np.array([0.0, 1.0])).n_features() == (1, 1, 1)
    assert replace(choice, sizes=np.array([1.0])).n_features() == (0, 0, 0)


def test_equal_probabilities_are_ordered_by_the_weight_in_its_standard_deviations(average_model):
    (part,) = kept(average_model)
    choice = replace(part.choice, probability=np.ones(8), weight=np.array([9.0, 2, 3, 0, 0, 0, 0, 0]), std=np.ones(8))
    choice.std[0] = 100.0
    whole = replace(part, choice=choice).of(np.arange(3))
    assert_array_equal(whole.order(), [2, 1, 0])


def test_every_output_and_class_has_its_own_choice():
    X, y = alike()
    noise = np.random.default_rng(5).standard_normal(80)
    two = ARDRegressor(max_flips=600).fit(X, np.column_stack([y, 2 * X[:, 7] + noise]))
    parts = kept(two)
    assert [part.index.tolist() for part in parts] == [[0], [7]]
    assert [part.choice.sets for part in parts] == two.credible_sets_
    one = ARDRegressor(max_flips=600).fit(X, y[:, None])
    assert kept(one)[0].choice.sets == one.credible_sets_[0]
    nothing = ARDRegressor(max_flips=600).fit(X, noise)
    assert nothing.credible_sets_ == []
    assert kept(nothing)[0].choice.sets == []


@pytest.mark.filterwarnings("ignore:the chains do not agree")
def test_classes_of_an_averaged_model_are_told_apart():
    X, y = alike()
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-1, 1])]
    model = SparseLogisticRegression(average=True, max_flips=300, n_chains=2).fit(X, labels)
    parts = kept(model)
    assert [part.output for part in parts] == ["a", "b", "c"]
    for k, part in enumerate(parts):
        assert_array_equal(part.choice.probability, model.inclusion_probability_[k])
        assert part.choice.sets == model.credible_sets_[k]
    html = kept_html(model)
    assert html.count("In the model: ") == 3
    assert "a: claims" in html


def test_the_notebook_shows_claims_sets_likely_features_and_size(average_model):
    html = unescape(kept_html(average_model))
    assert "claims 1 of 8 features (inclusion probability at least 90 %)" in html
    choice = kept(average_model)[0].choice
    (pair,) = choice.several()
    told = set_text([f"x{j}" for j in pair.features], pair.probability)
    assert f"O{told[1:]}" in html
    for j in choice.likely():
        assert f"x{j} ({probable(choice.probability[j])})" in html
    assert f"In the model: {size_text(*choice.n_features())}" in html
    assert "log evidence of the best single model" in html
    assert f"{average_model.n_flips_:,} flips of each chain" in html
    assert "nats" not in html


def test_stand_ins_stand_beside_their_feature(average_model):
    model = copy(average_model)
    model._credible = [[CredibleSet(np.array([0, 4, 6]), 0.97, 0.8)]]
    header, row = Tables(unescape(kept_html(model))).rows
    assert header[-1] == "or instead"
    assert row[-1] == "x4 and x6"


def test_chains_that_do_not_agree_are_told_apart_from_a_search_cut_short(average_model):
    model = copy(average_model)
    model.converged_ = False
    assert "the chains do not agree" in kept_html(model)
    assert "raise max_flips" in kept_html(model)
    assert "raise max_iter" not in kept_html(model)


def test_probabilities_are_never_rounded_to_certainty():
    values = [1.0, 0.9996, 0.9951, 0.905, 0.5, 0.012, 0.004, 1e-9]
    assert [probable(value) for value in values] == [
        "> 99.9 %", "> 99.9 %", "99.5 %", "90 %", "50 %", "1 %", "0.4 %", "< 0.1 %",
    ]  # fmt: skip
    assert size_text(1, 1, 1) == "1 feature (nearly certain)"
    assert size_text(4, 5, 8) == "5 features (4 to 8 with probability 90 %)"


def test_strangers_are_refused(make_data):
    with pytest.raises(TypeError, match="LinearRegression is not a fitted estimator of sparsebayes"):
        kept(LinearRegression().fit(*make_data()))


def test_feature_weights_are_what_was_kept():
    class Learned:
        feature_weights_ = np.array([0.0, 2.0, 0.0, 0.5])

    (part,) = kept(Learned())
    assert_array_equal(part.index, [1, 3])
    assert_array_equal(part.weight, [2.0, 0.5])
    assert part.what == "feature"


# --- the notebook ---


class Tables(HTMLParser):
    """The cells of all tables, row by row."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.inside = [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self.inside = tag in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data

    def handle_endtag(self, tag):
        self.inside = False


@pytest.fixture
def framed(data_for):
    def make(model):
        X, y = data_for(model, d=3)
        return pd.DataFrame(X, columns=[EVIL, "größe_1 ₂", "größe_2 ₂"]), y

    return make


def test_a_fitted_estimator_shows_what_it_kept(quick_default, framed):
    model = clone(quick_default)
    assert kept_html(model) == ""
    assert '<div class="sparsebayes">' not in model._repr_html_()
    model.fit(*framed(model))
    html = model._repr_html_()
    assert model._repr_mimebundle_()["text/html"].endswith("</p></div>")
    assert html.endswith(kept_html(model))
    (part,) = kept(model)
    header, *rows = Tables(kept_html(model)).rows
    probability = ["probability"] * (part.choice is not None)
    assert header[: 2 + len(probability)] == [part.what, *probability, "weight"]
    certain = np.isfinite(part.std).all()
    assert ("95 % interval" in header) == certain != hasattr(model, "feature_weights_")
    for row, k in zip(rows, part.order()[:8], strict=False):
        if part.choice is not None:
            assert row.pop(1) == probable(part.choice.probability[part.index[k]])
        assert float(row[1]) == pytest.approx(part.weight[k], rel=1e-3)
        if certain:
            ends = [float(end) for end in row[2].split(" … ")]
            assert ends == pytest.approx(part.interval(0.95)[k], rel=1e-3)
        assert row[0] == (model.feature_names_in_[part.index[k]] if part.what == "feature" else f"row {part.index[k]}")
    assert ("noise standard deviation" in html) == (is_regressor(model) and not is_counting(model))
    assert ("dispersion" in html) == is_counting(model)
    assert "converged in" in html
    assert f"{'claims' if part.choice is not None else 'kept'} {len(part.index)}" in html


def test_names_are_harmless(default_selector, framed):
    model = clone(default_selector).fit(*framed(default_selector))
    html = kept_html(model)
    assert EVIL not in html
    assert "&lt;script&gt;" in html


def test_many_rows_and_classes_are_counted(make_data):
    X, y = make_data(200, 30, n_true=20)
    html = kept_html(ARDRegressor(average=False).fit(X, y))
    assert "… and 12 more" in html
    model = ARDRegressor(average=False).fit(X, np.column_stack([y] * 6))
    assert "… and 2 more outputs or classes" in kept_html(model)


def test_a_fit_cut_short_says_so(make_data):
    with pytest.warns(UserWarning, match="max_iter"):
        model = ARDRegressor(max_iter=1).fit(*make_data(noise=3.0))
    assert "not converged" in kept_html(model)
    assert "raise max_iter" in kept_html(model)


def test_a_broken_estimator_is_still_shown(quick_default, data_for):
    model = clone(quick_default).fit(*data_for(quick_default))
    del model.converged_
    assert "cannot be shown" in model._repr_html_()


def test_nothing_is_added_where_scikit_learn_shows_text(make_data):
    model = ARDRegressor().fit(*make_data())
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert model._repr_mimebundle_().keys() == {"text/plain"}
    assert make_pipeline(model)._repr_html_()


def test_long_names_keep_both_ends():
    assert short("a" * 5) == "a" * 5
    assert short("ab\n c") == "ab c"
    name = short("start" + "x" * 100 + "end", 20)
    assert len(name) == 20
    assert name.startswith("start")
    assert name.endswith("end")
