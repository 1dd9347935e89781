"""What a model answers, by which one that was stored is compared with itself."""

from forging import SCHEMA
from numpy.testing import assert_array_equal

QUESTIONS = {
    "predict": {},
    "predict_interval": {"coverage": 0.8},
    "predict_proba": {},
    "predict_log_proba": {},
    "decision_function": {},
}


def answers(model, X):
    """Everything that a model says of new rows."""
    said = [getattr(model, name)(X, **more) for name, more in QUESTIONS.items() if hasattr(model, name)]
    if hasattr(model, "predict_interval"):
        said += model.predict(X, return_std=True)
    if hasattr(model, "noise_variance_"):
        said.append(model.predict(X, return_cov=True)[1])
    if hasattr(model, "sample_posterior"):
        for draws in model.sample_posterior(3, random_state=0):
            said += draws if isinstance(draws, list) else [draws]
    return said


def assert_same(again, model, X):
    for got, expected in zip(answers(again, X), answers(model, X), strict=True):
        assert got.dtype == expected.dtype
        assert_array_equal(got, expected)


def kernel_fit(members):
    """The description of the fit inside a stored RVMRegressor."""
    (fit,) = members[SCHEMA]["content"]["content"]["_fits"]["content"]
    return fit
