"""What all estimators share: a fit that is whole or did not happen, progress, and the selector's face."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from sparsebayes.core.types import AnyArray
from sparsebayes.solvers.loop import Callback, Info


def whole_fit(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Leave the estimator unfitted when `fit` raises, whatever it had stored by then and whatever it held before."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        # What others have put there (a pipeline's callback context) is not the fit's, and stays.
        foreign = {name for name in vars(self) if name.startswith("_parent")}
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            stays = foreign | set(self.get_params(deep=False))
            for name in [name for name in vars(self) if name not in stays]:
                delattr(self, name)
            raise

    return guarded


SMALL = 5_000_000
"""Numbers in a design up to which several BLAS threads cost a search more than they bring."""


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def threads_for(size: int) -> AbstractContextManager[object]:
    """One BLAS thread around the many small products of a search on a small design; all of them on a large one."""
    return _controller().limit(limits=1, user_api="blas") if size <= SMALL else nullcontext()


def progress(verbose: int) -> Callback | None:
    """A callback that tells on standard error how a fit goes: every 10th step, or every step from `verbose` 2 on."""
    if not verbose:
        return None

    def tell(n_steps: int, info: Info) -> None:
        if verbose > 1 or n_steps == 1 or n_steps % 10 == 0:
            print(
                f"step {n_steps:5d}  log evidence {info.objective:14.4f}  active {info.n_active:6d}  "
                f"to gain {info.change:9.2e}  {info.action}",
                file=sys.stderr,
            )

    return tell


class SupportMixin:
    """`get_support` for estimators with a `relevance_` per feature."""

    def get_support(self, indices: bool = False) -> AnyArray:
        """Features that were kept (for several outputs: by any of them), as a mask or as indices."""
        check_is_fitted(self)
        relevance = np.atleast_2d(self.relevance_)  # type: ignore[attr-defined]
        mask = np.asarray((relevance > 0).any(axis=0))
        return np.flatnonzero(mask) if indices else mask
