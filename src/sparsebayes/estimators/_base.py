"""Shared by all estimators: fits that succeed or leave no trace, callbacks and progress, and the selector methods."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import cache, wraps
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import make_constraint
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.threads import blas
from sparsebayes.core.types import AnyArray
from sparsebayes.engine.loop import Callback, Info, warn_not_converged
from sparsebayes.estimators._callbacks import STATE, Tasks
from sparsebayes.estimators._progress import SCREEN, Steps, can_draw, figures, looked_at

T = TypeVar("T")
Fit = TypeVar("Fit", bound=Callable[..., Any])
"""A method that fits. Its decorators keep its type, so that type checkers know what `fit` takes and returns."""


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Fit], Fit]:
    """scikit-learn's `_fit_context`, with types."""
    return cast(Callable[[Fit], Fit], _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation))


def whole_fit(fit: Fit) -> Fit:
    """Leave the estimator unfitted when `fit` raises, whatever it had stored by then and whatever it held before."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        # What others have put there (callbacks, a pipeline's context of them) is not the fit's, and stays.
        foreign = vars(self).keys() & set(STATE)
        try:
            found = fit(self, *args, **kwargs)
            check_finite(found)
            return found
        except BaseException as error:
            stays = foreign | set(self.get_params(deep=False))
            for name in [name for name in vars(self) if name not in stays]:
                delattr(self, name)
            if isinstance(error, BREAKDOWNS):
                reason = error.args[-1] if error.args else type(error).__name__
                raise FloatingPointError(f"the fit broke down ({reason}): {EXTREME}") from error
            raise

    return cast(Fit, guarded)


BREAKDOWNS = (ZeroDivisionError, OverflowError, np.linalg.LinAlgError)
"""Exceptions of arithmetic that overflows or divides by zero."""
EXTREME = "X, y, sample_weight or a parameter is too extreme; use other units, or values nearer to the defaults"


def check_finite(model: Any) -> None:
    """Raise FloatingPointError if a number of the fit is not finite: predictions would be nan."""
    for name in ("coef_", "intercept_", "noise_variance_"):
        if not np.isfinite(vars(model).get(name, 0.0)).all():
            raise FloatingPointError(f"{name} of the fit is not finite: {EXTREME}")


SMALL = 5_000_000
"""Numbers in a design up to which a search is faster with one BLAS thread than with several."""


def threads_for(size: int) -> AbstractContextManager[object]:
    """One BLAS thread around the many small products of a search on a small design; all of them on a large one."""
    if size > SMALL or all(library.get_num_threads() == 1 for library in blas().lib_controllers):
        return nullcontext()
    return blas().limit(limits=1)


# --- Callbacks and progress of a fit ---


class Watch:
    """A running fit, with the callbacks and the display that receive its steps."""

    def __init__(self, model: Any, tasks: Tasks | None) -> None:
        self.line = Steps(type(model).__name__)
        self.tasks = tasks
        self.display: AbstractContextManager[object] = nullcontext()
        self.listeners: list[Callback] = [] if tasks is None else [tasks]
        self.n_steps = 0
        self.stopped_at = 0
        """The step after which a callback asked to stop; 0 if none did."""
        if isinstance(model, MetaEstimatorMixin):  # which shows a bar
            return
        if model.verbose > 1:
            self.listeners.append(printing(1))
        elif model.verbose and looked_at() and not can_draw():
            self.listeners.append(printing(10))
        elif model.verbose and looked_at():
            self.listeners.append(self.line)
            self.display = SCREEN.showing(self.line)

    def listening(self) -> Callback | None:
        """The callback of a solver that starts now; None if nobody listens."""
        if self.tasks is not None:
            self.tasks.begin()
        return self if self.listeners else None

    def __call__(self, n_steps: int, info: Info) -> bool:
        """Report a step. Once a callback has asked to stop, every loop of the fit ends after one step."""
        self.n_steps += 1
        answers = [listener(n_steps, info) for listener in self.listeners]
        if any(answers) and not self.stopped_at:
            self.stopped_at = self.n_steps
        return self.stopped_at > 0


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)
"""The running fit of this context. It is no attribute of the estimator, which may be copied and sent to workers; they
(threads or processes) have none."""


def watched(fit: Fit) -> Fit:
    """Make the running fit known to `progress`, and close the display however the fit ends.

    It stands inside scikit-learn's `_fit_context`, which ends the callbacks.
    """

    @wraps(fit)
    def followed(self: Any, *args: Any, **kwargs: Any) -> Any:
        watch = Watch(self, Tasks.of(self, fit, args, kwargs))
        token = _WATCH.set(watch)
        try:
            with watch.display:
                result = fit(self, *args, **kwargs)
        finally:
            _WATCH.reset(token)
        if watch.tasks is not None:
            watch.tasks.end()
        return result

    return cast(Fit, followed)


def progress(verbose: int) -> Callback | None:
    """The callback of a solver: user callbacks and, by `verbose`, a live line (1) or a line for each step (2)."""
    watch = _WATCH.get()
    if watch is not None:
        return watch.listening()
    return printing(1) if verbose > 1 else None


def printing(every: int) -> Callback:
    """A callback that reports the first step, and then one in `every` steps, on standard error."""

    def tell(n_steps: int, info: Info) -> None:
        if n_steps == 1 or n_steps % every == 0:
            print(f"step {n_steps:5d}", *figures(info), sep="  ", file=sys.stderr)

    return tell


def counted(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The same items one by one; the live line shows the number of the present one."""
    watch = _WATCH.get()
    if watch is None or total < 2:
        yield from items
        return
    work = iter(items)
    try:
        for k in range(1, total + 1):
            watch.line.places[what] = f"{what} {k} of {total}"
            yield next(work)
    finally:
        del watch.line.places[what]


def wanted(items: Iterable[T]) -> Iterator[T]:
    """The same items one by one, until a callback asks to stop; the first item is always needed, the others are not."""
    watch = _WATCH.get()
    for item in items:
        yield item
        if watch is not None and watch.stopped_at:
            return


def as_tasks(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The same items one by one, each a task for the callbacks of the running fit."""
    watch = _WATCH.get()
    return iter(items) if watch is None or watch.tasks is None else watch.tasks.through(items, total, what)


def warn_unless_converged(model: Any) -> None:
    """Warn if the fit did not converge, with the reason: `max_iter`, rounding, or a callback that asked to stop."""
    watch = _WATCH.get()
    stopped = watch is not None and watch.stopped_at > 0
    if model.converged_ and not stopped:
        return
    gap = float(np.max(model.optimality_gap_))
    if watch is not None and stopped:
        model.converged_ = False
        warnings.warn(
            f"not converged: a callback stopped the fit at step {watch.stopped_at}. The model is what was found by "
            f"then; a single change of it could still raise the log evidence by {gap:.3g} nats (tol={model.tol:g}).",
            ConvergenceWarning,
            stacklevel=2,
        )
    elif hasattr(model, "_rounding_remedy") and model.n_iter_ < model.max_iter:
        warnings.warn(
            f"not converged: rounding ended the search after {model.n_iter_} steps, because columns depend on each "
            f"other. A single change of the model could still raise the log evidence by {gap:.3g} nats "
            f"(tol={model.tol:g}); {model._rounding_remedy}.",
            ConvergenceWarning,
            stacklevel=2,
        )
    else:
        warn_not_converged(gap, model.tol, model.max_iter, ConvergenceWarning)


class NamedParameters(BaseEstimator):
    """An estimator whose parameters and their constraints are read once: scikit-learn asks for them in every fit."""

    _parameter_constraints: dict[str, list[Any]]

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        return super()._get_param_names()

    @classmethod
    @cache
    def _constraints(cls) -> dict[str, list[Any]]:
        return {name: [make_constraint(each) for each in some] for name, some in cls._parameter_constraints.items()}

    @classmethod
    @cache
    def _defaults(cls) -> dict[str, Any]:
        return {name: each.default for name, each in signature(cls).parameters.items()}

    def _validate_params(self) -> None:
        known, defaults = self._constraints(), self._defaults()
        for name in self._get_param_names():
            value = getattr(self, name)
            if value is defaults.get(name) or name not in known:  # a default needs no check
                continue
            if not any(each.is_satisfied_by(value) for each in known[name]):
                super()._validate_params()  # raises, and says what is wrong


class SupportMixin(SelectorMixin):
    """Selector methods of an estimator with a `relevance_` per feature: `transform` returns the kept features."""

    def get_support(self, indices: bool = False) -> AnyArray:
        """Features that were kept (for several outputs: by any of them), as a mask or as indices."""
        check_is_fitted(self)
        relevance = np.atleast_2d(self.relevance_)
        mask = np.asarray((relevance > 0).any(axis=0))
        return np.flatnonzero(mask) if indices else mask

    def _get_support_mask(self) -> AnyArray:
        return self.get_support()
