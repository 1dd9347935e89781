"""Files of averages over models: there and back, as ONNX, and forged."""

from dataclasses import replace

import numpy as np
import pytest
from forms import SHORT_CHAINS
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes import (
    ARDRegressor,
    ModelFileError,
    SparseLogisticRegression,
    SparsePoissonRegressor,
    load,
    save,
    to_onnx,
)
from sparsebayes.core.credible import CredibleSet

pytestmark = pytest.mark.filterwarnings("ignore:the chains do not agree")
CASES = {
    "y": (ARDRegressor, lambda y: y),
    "Y": (ARDRegressor, lambda y: np.column_stack([y, -(y**2)])),
    "constant": (ARDRegressor, np.ones_like),
    "two classes": (SparseLogisticRegression, lambda y: y > 0),
    "three classes": (SparseLogisticRegression, lambda y: np.digitize(y, [-0.5, 0.5])),
    "counts": (SparsePoissonRegressor, lambda y: np.rint(np.exp(y))),
}
ATTRIBUTES = ("inclusion_probability_", "coef_", "coef_std_", "chain_error_", "effective_sample_size_", "n_flips_")


@pytest.fixture(params=CASES)
def average(request, data):
    cls, target = CASES[request.param]
    return cls(**SHORT_CHAINS).fit(data[0], target(data[1]))


@pytest.fixture
def model(data):
    return ARDRegressor(warm_start=True, **SHORT_CHAINS).fit(*data)


def test_an_average_comes_back_to_the_bit(average, data, path):
    X, _ = data
    save(average, path)
    again = load(path)
    for name in ATTRIBUTES:
        assert_array_equal(getattr(again, name), getattr(average, name), err_msg=name)
    assert_array_equal(again.predict(X), average.predict(X))
    assert_array_equal(again.model_.predict(X), average.model_.predict(X))
    assert_array_equal(again.get_support(probability=0.3), average.get_support(probability=0.3))
    assert str(again.credible_sets_) == str(average.credible_sets_)
    if hasattr(average, "coef_interval"):
        assert_array_equal(again.coef_interval(), average.coef_interval())


@pytest.mark.parametrize("min_gain", [{"gene 0": 0, "gene 1": 3.0}, {1: 2.5}, [1.0, 2.0, 0.0]], ids=str)
def test_prices_come_back(min_gain, path):
    save(ARDRegressor(min_gain=min_gain), path)
    assert load(path).min_gain == min_gain


def test_prices_in_an_array_come_back(path):
    save(ARDRegressor(min_gain=np.array([1.0, 2.0])), path)
    assert_array_equal(load(path).min_gain, [1.0, 2.0])


def test_a_warm_start_goes_on_after_loading(model, data, path):
    X, y = data
    save(model, path)
    again = load(path)
    assert_array_equal(again.fit(X, y + X[:, 1]).predict(X), model.fit(X, y + X[:, 1]).predict(X))


def test_onnx_predicts_the_average(model, data):
    runtime = pytest.importorskip("onnxruntime")
    X, _ = data
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    got = session.run(None, {session.get_inputs()[0].name: X})[0]
    assert_allclose(np.ravel(got), model.predict(X), rtol=1e-6)
    assert np.abs(model.predict(X) - model.model_.predict(X)).max() > 1e-3  # which the export must not be


# --- forged fields ---


def forged(**fields):
    """Replace fields of the average; values are functions of the old fit."""
    return lambda model: {"_fits": [replace(fit, **{k: v(fit) for k, v in fields.items()}) for fit in model._fits]}


FORGED = {
    "too few draws": forged(draws=lambda fit: fit.draws[:3]),
    "narrow draws": forged(draws=lambda fit: fit.draws[:, :1]),
    "flat draws": forged(draws=lambda fit: fit.draws.ravel()),
    "no draws": forged(draws=lambda fit: fit.draws[:0], share=lambda fit: fit.share[:0]),
    "shares of nan": forged(share=lambda fit: np.full_like(fit.share, np.nan)),
    "shares below zero": forged(share=lambda fit: -fit.share),
    "shares of two": forged(share=lambda fit: 2 * fit.share),
    "too many shares": forged(share=lambda fit: np.append(fit.share, 0.0)),
    "columns out of range": forged(columns=lambda fit: fit.columns + 10**6),
    "columns below zero": forged(columns=lambda fit: fit.columns - 10**6),
    "too few columns": forged(columns=lambda fit: fit.columns[:1]),
    "too many columns": forged(columns=lambda fit: np.tile(fit.columns, 50)),
    "words for columns": forged(columns=lambda fit: fit.columns.astype(float) + 0.5),
    "too few probabilities": forged(probability=lambda fit: fit.probability[:1]),
    "probabilities of nan": forged(probability=lambda fit: fit.probability * np.nan),
    "a narrow root": forged(root=lambda fit: fit.root[:, :1]),
    "a short mean": forged(mean=lambda fit: fit.mean[:1]),
    "a basis of other columns": forged(basis=lambda fit: replace(fit.basis, columns=fit.basis.columns + 10**6)),
    "no sizes": forged(sizes=lambda fit: fit.sizes[:0]),
    "singles out of range": lambda model: {
        "_singles": [replace(fit, columns=fit.columns + 10**6) for fit in model._singles]
    },
    "singles below zero": lambda model: {
        "_singles": [replace(fit, columns=fit.columns - 100) for fit in model._singles]
    },
    "singles with few precisions": lambda model: {
        "_singles": [replace(fit, precision=fit.precision[:0]) for fit in model._singles]
    },
    "no singles": lambda model: {"_singles": []},
    "sets out of range": lambda model: {"_credible": [[CredibleSet(np.array([10**9, -7]), np.nan, 2.0)]]},
    "no sets": lambda model: {"_credible": []},
    "a narrow inclusion": lambda model: {"inclusion_probability_": model.inclusion_probability_[:1]},
}
QUESTIONS = {
    "predict": lambda model, X, y: model.predict(X, return_std=True),
    "predict_interval": lambda model, X, y: model.predict_interval(X),
    "coef_interval": lambda model, X, y: model.coef_interval(),
    "sample_posterior": lambda model, X, y: model.sample_posterior(5, random_state=0),
    "sample_y": lambda model, X, y: model.sample_y(X, 5, random_state=0),
    "get_support": lambda model, X, y: model.get_support(),
    "credible_sets_": lambda model, X, y: model.credible_sets_,
    "model_": lambda model, X, y: model.model_.predict(X),
    "notebook": lambda model, X, y: model._repr_html_(),
    "onnx": lambda model, X, y: to_onnx(model),
    "warm start": lambda model, X, y: model.fit(X, y),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("forgery", FORGED)
def test_forged_fields_are_refused_or_lead_to_an_exception(forgery, model, data, path):
    """The file is refused, or every question has an answer or an ordinary exception: no fault of memory."""
    vars(model).update(FORGED[forgery](model))
    save(model, path)
    try:
        again = load(path)
    except ModelFileError:
        return
    answered = 0
    for ask in QUESTIONS.values():
        try:
            ask(again, *data)
            answered += 1
        except (ValueError, IndexError, TypeError, AttributeError, ArithmeticError):
            pass
    assert answered  # at least one of them does not look at the forged field


def there_and_back(model, path):
    save(model, path)
    return load(path)


WRONG_KINDS = {
    "a function": {"share": len},
    "words": {"draws": np.array(["a", "b"], dtype=object)},
    "an object": {"probability": ARDRegressor()},
    "another type": {"error": [1.0]},
}


@pytest.mark.parametrize("forgery", WRONG_KINDS)
def test_fields_of_the_wrong_kind_are_refused(forgery, model, path):
    model._fits = [replace(model._fits[0], **WRONG_KINDS[forgery])]
    with pytest.raises(ModelFileError):
        there_and_back(model, path)
