"""scikit-learn's face: validation, labels, storing and predicting."""

from sparsebayes.estimators.ard import ARDRegressor

ESTIMATORS = (ARDRegressor,)
"""Every public estimator; the tests walk this register, so that a new one is covered by being listed."""
