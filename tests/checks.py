"""scikit-learn's checks, and which of them an estimator gets for each way to fit it."""

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import estimator_checks_generator

FORMS = {"average", "n_chains", "max_flips", "n_restarts", "noise", "multi_output", "feature_weights"}
"""Parameters whose values lead to a `fit` of its own, with its own handling of inputs."""

NUMERICAL = {
    "check_class_weight_classifiers",
    "check_classifiers_classes",
    "check_classifiers_one_label_sample_weights",
    "check_classifiers_train",
    "check_decision_proba_consistency",
    "check_estimator_sparse_array",
    "check_estimators_dtypes",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_non_transformer_estimators_n_iter",
    "check_regressor_multioutput",
    "check_regressors_int",
    "check_regressors_train",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_transformer_general",
}
"""Checks that compare numbers of fits. All others look at types, names, messages and attributes, which solvers, priors
and rules of one form do not touch."""


def check_name(check: Any) -> str:
    return getattr(check, "func", check).__name__


def is_form(model: BaseEstimator) -> bool:
    """Whether nothing but its form differs from the defaults."""
    defaults = type(model)().get_params()
    return all(key in FORMS or value == defaults[key] for key, value in model.get_params().items())


def checks_of(model: BaseEstimator) -> Iterator[Callable[[BaseEstimator], None]]:
    """All checks for the defaults and the other forms, those of the numbers for every solver and option."""
    everything = is_form(model)
    for _, check in estimator_checks_generator(model):
        if everything or check_name(check) in NUMERICAL:
            yield check
