"""Sparse Bayesian learning: which features matter, how sure that is, and how well the model explains the data."""

from sparsebayes.estimators.ard import ARDRegressor
from sparsebayes.estimators.bls import BLSRegressor
from sparsebayes.estimators.logistic import SparseLogisticRegression
from sparsebayes.estimators.rvc import RVMClassifier
from sparsebayes.estimators.rvm import RVMRegressor
from sparsebayes.estimators.vb import VBLogisticRegression

__version__ = "0.1.0"
__all__ = [
    "ARDRegressor",
    "BLSRegressor",
    "RVMClassifier",
    "RVMRegressor",
    "SparseLogisticRegression",
    "VBLogisticRegression",
    "__version__",
]
