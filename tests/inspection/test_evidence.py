import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, SparseLogisticRegression
from sparsebayes.inspection import EvidencePathDisplay


def test_the_line_is_the_path(make_data):
    model = ARDRegressor().fit(*make_data())
    shown = EvidencePathDisplay.from_estimator(model).plot()
    line = shown.ax_.lines[0]
    assert_array_equal(line.get_xdata(), np.arange(1, len(model.evidence_path_) + 1))
    assert_array_equal(line.get_ydata(), model.evidence_path_)
    assert f"{model.evidence_path_[-1]:.1f} nats" in shown.ax_.get_title(loc="left")
    assert shown.text().endswith(f"from {model.evidence_path_[0]:.1f} to {model.evidence_path_[-1]:.1f} nats.")


def test_what_was_still_to_gain(make_data):
    model = ARDRegressor().fit(*make_data())
    shown = EvidencePathDisplay.from_estimator(model).plot(quantity="to-gain")
    gap = model.evidence_path_.max() - model.evidence_path_
    assert_allclose(shown.ax_.lines[0].get_ydata(), gap[gap > 0])
    assert shown.ax_.get_yscale() == "log"


def test_every_class_has_a_line_of_its_own(make_data):
    X, y = make_data(150, 4)
    model = SparseLogisticRegression(average=False).fit(X, np.array(["a", "b", "c"])[np.digitize(y, [-1.5, 1.5])])
    shown = EvidencePathDisplay.from_estimator(make_pipeline(StandardScaler(), model).fit(X, y > 0)).plot()
    assert len(shown.paths) == 1
    model.fit(X, np.array(["a", "b", "c"])[np.digitize(y, [-1.5, 1.5])])
    shown = EvidencePathDisplay.from_estimator(model).plot()
    assert [text.get_text() for text in shown.ax_.get_legend().get_texts()] == ["a", "b", "c"]
    for line, path in zip(shown.ax_.lines, model.evidence_path_, strict=True):
        assert_array_equal(line.get_ydata(), path)
    assert len({(line.get_color(), line.get_linestyle()) for line in shown.ax_.lines}) == 3
    table = shown.to_table()
    assert table["log_evidence"] == np.concatenate(model.evidence_path_).tolist()
    assert table["path"].count("b") == len(model.evidence_path_[1])


def test_a_search_that_was_cut_short_says_so():
    shown = EvidencePathDisplay(paths=[np.array([1.0, 2.0])], labels=[""], converged=False)
    assert "not converged" in shown.text()
    assert "not converged" in shown.plot().ax_.get_title(loc="left")


def test_a_path_that_is_not_finite_is_said(make_data):
    X, y = make_data()
    shown = EvidencePathDisplay.from_estimator(ARDRegressor().fit(X, np.ones_like(y))).plot()
    assert "not finite" in shown.text()


def test_unknown_quantity_is_named():
    with pytest.raises(ValueError, match="quantity='size'"):
        EvidencePathDisplay(paths=[np.arange(3.0)], labels=[""]).plot(quantity="size")
