"""Sparse Bayesian learning: which features matter, how sure that is, and how well the model explains the data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsebayes.core.moments import Moments
    from sparsebayes.data.read import read_blocks
    from sparsebayes.estimators.ard import ARDRegressor
    from sparsebayes.estimators.bls import BLSRegressor
    from sparsebayes.estimators.drvm import DRVMRegressor
    from sparsebayes.estimators.logistic import SparseLogisticRegression
    from sparsebayes.estimators.pcvm import PCVMClassifier
    from sparsebayes.estimators.pfcvm import PFCVMClassifier
    from sparsebayes.estimators.poisson import SparsePoissonRegressor
    from sparsebayes.estimators.rvc import RVMClassifier
    from sparsebayes.estimators.rvm import RVMRegressor
    from sparsebayes.estimators.stability import StabilitySelector, selection_frequency
    from sparsebayes.estimators.vb import VBLogisticRegression
    from sparsebayes.io.model_file import ModelFileError, load, save
    from sparsebayes.io.onnx.export import to_onnx

__version__ = "0.2.0"
__all__ = [
    "ARDRegressor",
    "BLSRegressor",
    "DRVMRegressor",
    "ModelFileError",
    "Moments",
    "PCVMClassifier",
    "PFCVMClassifier",
    "RVMClassifier",
    "RVMRegressor",
    "SparseLogisticRegression",
    "SparsePoissonRegressor",
    "StabilitySelector",
    "VBLogisticRegression",
    "__version__",
    "load",
    "read_blocks",
    "save",
    "selection_frequency",
    "to_onnx",
]

_ON_DEMAND = {
    "ARDRegressor": "sparsebayes.estimators.ard",
    "BLSRegressor": "sparsebayes.estimators.bls",
    "DRVMRegressor": "sparsebayes.estimators.drvm",
    "ModelFileError": "sparsebayes.io.model_file",
    "Moments": "sparsebayes.core.moments",
    "PCVMClassifier": "sparsebayes.estimators.pcvm",
    "PFCVMClassifier": "sparsebayes.estimators.pfcvm",
    "RVMClassifier": "sparsebayes.estimators.rvc",
    "RVMRegressor": "sparsebayes.estimators.rvm",
    "SparseLogisticRegression": "sparsebayes.estimators.logistic",
    "SparsePoissonRegressor": "sparsebayes.estimators.poisson",
    "StabilitySelector": "sparsebayes.estimators.stability",
    "VBLogisticRegression": "sparsebayes.estimators.vb",
    "load": "sparsebayes.io.model_file",
    "read_blocks": "sparsebayes.data.read",
    "save": "sparsebayes.io.model_file",
    "selection_frequency": "sparsebayes.estimators.stability",
    "to_onnx": "sparsebayes.io.onnx.export",
}
"""Where each name lives. Its module is imported when it is first asked for, so that the command line is quick."""


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(_ON_DEMAND[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
