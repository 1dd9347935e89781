"""The scikit-learn interface: validation, labels, storing and predicting.

Beside the estimators, the package exports what other rooms need: `kept` reads what a fitted model keeps.
"""

from sparsebayes.estimators._kept import LIKELY, Choice, Kept, feature_names, kept
from sparsebayes.estimators._progress import SCREEN, Bar, looked_at
from sparsebayes.estimators._words import listed, probable, set_text, short, size_text
from sparsebayes.estimators.ard import ARDRegressor
from sparsebayes.estimators.bls import BLSRegressor
from sparsebayes.estimators.drvm import DRVMRegressor
from sparsebayes.estimators.logistic import SparseLogisticRegression
from sparsebayes.estimators.pcvm import PCVMClassifier
from sparsebayes.estimators.pfcvm import PFCVMClassifier
from sparsebayes.estimators.poisson import SparsePoissonRegressor
from sparsebayes.estimators.rvc import RVMClassifier
from sparsebayes.estimators.rvm import RVMRegressor
from sparsebayes.estimators.vb import VBLogisticRegression

__all__ = [
    "ESTIMATORS",
    "LIKELY",
    "SCREEN",
    "ARDRegressor",
    "BLSRegressor",
    "Bar",
    "Choice",
    "DRVMRegressor",
    "Kept",
    "PCVMClassifier",
    "PFCVMClassifier",
    "RVMClassifier",
    "RVMRegressor",
    "SparseLogisticRegression",
    "SparsePoissonRegressor",
    "VBLogisticRegression",
    "feature_names",
    "kept",
    "listed",
    "looked_at",
    "probable",
    "set_text",
    "short",
    "size_text",
]

ESTIMATORS = (
    ARDRegressor,
    BLSRegressor,
    DRVMRegressor,
    PCVMClassifier,
    PFCVMClassifier,
    RVMClassifier,
    RVMRegressor,
    SparseLogisticRegression,
    SparsePoissonRegressor,
    VBLogisticRegression,
)
"""Every public estimator; the tests walk this register, so that a new one is covered by being listed."""
