"""Sparse Bayesian learning: which features matter, how sure that is, and how well the model explains the data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sparsebayes.estimators.ard import ARDRegressor
from sparsebayes.estimators.bls import BLSRegressor
from sparsebayes.estimators.drvm import DRVMRegressor
from sparsebayes.estimators.logistic import SparseLogisticRegression
from sparsebayes.estimators.pcvm import PCVMClassifier
from sparsebayes.estimators.rvc import RVMClassifier
from sparsebayes.estimators.rvm import RVMRegressor
from sparsebayes.estimators.stability import StabilitySelector, selection_frequency
from sparsebayes.estimators.vb import VBLogisticRegression

if TYPE_CHECKING:
    from sparsebayes.app.onnx_export import to_onnx
    from sparsebayes.app.saving import ModelFileError, load, save

__version__ = "0.1.0"
__all__ = [
    "ARDRegressor",
    "BLSRegressor",
    "DRVMRegressor",
    "ModelFileError",
    "PCVMClassifier",
    "RVMClassifier",
    "RVMRegressor",
    "SparseLogisticRegression",
    "StabilitySelector",
    "VBLogisticRegression",
    "__version__",
    "load",
    "save",
    "selection_frequency",
    "to_onnx",
]

_ON_DEMAND = {
    "ModelFileError": "sparsebayes.app.saving",
    "load": "sparsebayes.app.saving",
    "save": "sparsebayes.app.saving",
    "to_onnx": "sparsebayes.app.onnx_export",
}
"""Names whose modules are imported when they are first asked for, so that `import sparsebayes` stays light."""


def __getattr__(name: str) -> Any:
    if name in _ON_DEMAND:
        return getattr(import_module(_ON_DEMAND[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_DEMAND})
