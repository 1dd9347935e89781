"""scikit-learn's callbacks (from version 1.9 on): those of `set_callbacks` are called at every step."""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from sparsebayes.engine.loop import Info

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks yet."""


T = TypeVar("T")
STATE = ("_skl_callbacks", "_skl_callbacks_to_teardown", "_callback_fit_ctx", "_parent_callback_ctx")
"""Attributes in which scikit-learn stores callbacks and their contexts."""


class Tasks:
    """A fit as scikit-learn's callbacks see it: a task whose parts are the steps of the solvers.

    How many there will be is not known in advance. Hooks are called when a step begins and when it ends; the last
    of them is what is left to do after the last step. A hook that is called at the end of a step finds its numbers in
    `context.info`.
    """

    def __init__(self, model: Any, data: dict[str, Any]) -> None:
        self.model, self.data = model, data
        self.root = model._init_callback_context(max_subtasks=None)
        self.root.call_on_fit_task_begin(estimator=model, **data)
        self.step: Any = None

    @classmethod
    def of(cls, model: Any, fit: Callable[..., Any], args: Any, kwargs: Any) -> "Tasks | None":
        """The tasks of a call of `fit`; None without callbacks."""
        if not getattr(model, "_skl_callbacks", None):
            return None
        given = inspect.signature(fit).bind(model, *args, **kwargs).arguments
        weight = given.get("sample_weight")
        metadata = None if weight is None else {"sample_weight": weight}
        return cls(model, {"X": given.get("X"), "y": given.get("y"), "metadata": metadata})

    def begin(self) -> None:
        """The first step of a solver begins, unless the last one of the solver before still goes on."""
        if self.step is None:
            self.step = self._begun(self.root, "step")

    def __call__(self, n_steps: int, info: Info) -> bool:
        """A step has ended and the next begins; whether a callback asks to stop."""
        self.step.info = info
        stop = self._ended(self.step)
        self.step = self._begun(self.root, "step")
        return stop

    def through(self, items: Iterable[T], total: int, what: str) -> Iterator[T]:
        """The same items, each of them a task of a group. All are needed, so no callback can stop them."""
        group = self._begun(self.root, f"{what}s", max_subtasks=total)
        work = iter(items)
        for _ in range(total):
            task = self._begun(group, what)
            item = next(work)
            self._ended(task)
            yield item
        self._ended(group)

    def end(self) -> None:
        """The fit has ended: call the hooks with the model."""
        if self.step is not None:
            self._ended(self.step)
        self.root.call_on_fit_task_end(estimator=self.model, reconstruction_attributes={}, **self.data)

    def _begun(self, parent: Any, what: str, max_subtasks: int = 0) -> Any:
        context = parent.subcontext(task_name=what, max_subtasks=max_subtasks)
        return context.call_on_fit_task_begin(estimator=self.model, **self.data)

    def _ended(self, context: Any) -> bool:
        return bool(context.call_on_fit_task_end(estimator=self.model, **self.data))


def unwatched(model: Any) -> Any:
    """A shallow copy without callbacks, also in the estimators that it holds: for worker processes and files."""
    bare = copy.copy(model)
    for name, value in vars(model).items():
        if name in STATE:
            delattr(bare, name)
        elif isinstance(value, BaseEstimator):
            setattr(bare, name, unwatched(value))
    if isinstance(bare, Pipeline):
        bare.steps = [(name, unwatched(step) if isinstance(step, BaseEstimator) else step) for name, step in bare.steps]
    return bare
