"""scikit-learn's face: validation, labels, storing and predicting."""

from sparsebayes.estimators.ard import ARDRegressor
from sparsebayes.estimators.bls import BLSRegressor
from sparsebayes.estimators.drvm import DRVMRegressor
from sparsebayes.estimators.logistic import SparseLogisticRegression
from sparsebayes.estimators.pcvm import PCVMClassifier
from sparsebayes.estimators.pfcvm import PFCVMClassifier
from sparsebayes.estimators.rvc import RVMClassifier
from sparsebayes.estimators.rvm import RVMRegressor
from sparsebayes.estimators.vb import VBLogisticRegression

ESTIMATORS = (
    ARDRegressor,
    BLSRegressor,
    DRVMRegressor,
    PCVMClassifier,
    PFCVMClassifier,
    RVMClassifier,
    RVMRegressor,
    SparseLogisticRegression,
    VBLogisticRegression,
)
"""Every public estimator; the tests walk this register, so that a new one is covered by being listed."""
