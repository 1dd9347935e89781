"""The lasso with a penalty per column, by scikit-learn's coordinate descent."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from sparsebayes.core.types import FloatArray


def weighted_lasso(Phi: FloatArray, t: FloatArray, penalty: FloatArray, start: FloatArray) -> FloatArray:
    """argmin ½‖t - Φw‖² + Σ penalty_m |w_m|, by dividing each column by its penalty.

    A solution that is not quite converged is good enough (the caller iterates), so scikit-learn's warning is not passed
    on.
    """
    if not Phi.shape[1]:
        return start
    unit = float(np.median(penalty))
    relative = penalty / unit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, coefs, _ = lasso_path(
            np.asfortranarray(Phi / relative),
            t,
            alphas=[unit / len(t)],
            coef_init=start * relative,
            tol=1e-6,
            max_iter=10_000,
        )
    return np.asarray(coefs[:, 0] / relative)
