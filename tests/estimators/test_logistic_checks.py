"""Those of scikit-learn's checks that look at numbers, for every linear classifier that a user can name."""

import pytest
from checks import check_name, checks_of
from inferences import INFERENCES
from sklearn.base import BaseEstimator

from sparsebayes import SparseLogisticRegression, VBLogisticRegression
from sparsebayes.core.predictive import PROBABILITIES

COMBINATIONS = [
    *(
        SparseLogisticRegression(
            average=False, prior="ard", inference=inference, min_gain=min_gain, rule=rule, tol=1e-3
        )
        for inference in INFERENCES["ard"]
        for min_gain, rule in (("auto", "fixed-point"), (0, "fixed-point"), (0, "em"))
        if (inference, rule) != ("reweighted-l1", "em")
    ),
    *(
        SparseLogisticRegression(average=False, prior="ridge", inference=inference, rule=rule, tol=1e-3)
        for inference in INFERENCES["ridge"]
        for rule in ("fixed-point", "em")
    ),
    *(
        SparseLogisticRegression(average=False, prior="laplace", inference=name, tol=1e-3)
        for name in INFERENCES["laplace"]
    ),
    *(
        SparseLogisticRegression(average=False, multi_class=name, min_gain=0, tol=1e-3)
        for name in ("softmax", "one-vs-rest")
    ),
    *(SparseLogisticRegression(average=False, proba=name) for name in PROBABILITIES if name != "quadrature"),
    SparseLogisticRegression(average=False, intercept_prior="ard"),
    SparseLogisticRegression(average=False, class_weight="balanced"),
    VBLogisticRegression(ard=False),
]
"""What a user can name, beside the defaults; a tolerance of 1e-3 nats because the checks fit hundreds of small models.

Not fit_intercept=False: one check asks that a large class weight turn all predictions, which no linear model without an
intercept can do (scikit-learn's own included).
"""


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize(
    ("model", "check"),
    [(model, check) for model in COMBINATIONS for check in checks_of(model)],
    ids=lambda part: str(part) if isinstance(part, BaseEstimator) else check_name(part).removeprefix("check_"),
)
def test_scikit_learn_check_of_every_combination(model, check):
    check(model)
