"""Sparse Bayesian learning: which features matter, how sure that is, and how well the model explains the data."""

from sparsebayes.estimators.ard import ARDRegressor

__version__ = "0.1.0"
__all__ = ["ARDRegressor", "__version__"]
