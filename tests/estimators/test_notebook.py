"""What a fitted estimator says it has kept, and how it shows that in a notebook."""

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
from sparsebayes.estimators._kept import kept
from sparsebayes.estimators._notebook import kept_html, short

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
    assert_allclose(part.std, np.sqrt(np.diag(model.covariance_)), rtol=1e-9)
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
    SparseLogisticRegression(),
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
    model = ARDRegressor().fit(X, np.column_stack([y, X[:, 7] - y]))
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
    classifier = SparseLogisticRegression().fit(X, y > 0)
    assert kept(classifier)[0].asked == classifier.min_gain_


def test_without_a_price_nothing_is_missed(make_data):
    (part,) = kept(ARDRegressor(min_gain=0.0).fit(*make_data()))
    assert len(part.gain) == 12
    assert not len(part.near_misses())


def test_strangers_are_refused(make_data):
    with pytest.raises(TypeError, match="LinearRegression is no fitted estimator of sparsebayes"):
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


def test_a_fitted_estimator_shows_what_it_kept(default, framed):
    model = clone(default)
    assert kept_html(model) == ""
    assert '<div class="sparsebayes">' not in model._repr_html_()
    model.fit(*framed(model))
    html = model._repr_html_()
    assert model._repr_mimebundle_()["text/html"].endswith("</p></div>")
    assert html.endswith(kept_html(model))
    (part,) = kept(model)
    header, *rows = Tables(kept_html(model)).rows
    assert header[:2] == [part.what, "weight"]
    certain = np.isfinite(part.std).all()
    assert ("95 % interval" in header) == certain != hasattr(model, "feature_weights_")
    for row, k in zip(rows, part.order()[:8], strict=False):
        assert float(row[1]) == pytest.approx(part.weight[k], rel=1e-3)
        if certain:
            ends = [float(end) for end in row[2].split(" … ")]
            assert ends == pytest.approx(part.interval(0.95)[k], rel=1e-3)
        assert row[0] == (model.feature_names_in_[part.index[k]] if part.what == "feature" else f"row {part.index[k]}")
    assert ("noise standard deviation" in html) == (is_regressor(model) and not is_counting(model))
    assert ("dispersion" in html) == is_counting(model)
    assert "converged in" in html
    assert f"kept {len(part.index)}" in html


def test_names_are_harmless(default_selector, framed):
    model = clone(default_selector).fit(*framed(default_selector))
    html = kept_html(model)
    assert EVIL not in html
    assert "&lt;script&gt;" in html


def test_many_rows_and_classes_are_counted(make_data):
    X, y = make_data(200, 30, n_true=20)
    html = kept_html(ARDRegressor().fit(X, y))
    assert "… and 12 more" in html
    model = ARDRegressor().fit(X, np.column_stack([y] * 6))
    assert "… and 2 more outputs or classes" in kept_html(model)


def test_a_fit_cut_short_says_so(make_data):
    with pytest.warns(UserWarning, match="max_iter"):
        model = ARDRegressor(max_iter=1).fit(*make_data(noise=3.0))
    assert "not converged" in kept_html(model)
    assert "raise max_iter" in kept_html(model)


def test_a_broken_estimator_is_still_shown(default, data_for):
    model = clone(default).fit(*data_for(default))
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
