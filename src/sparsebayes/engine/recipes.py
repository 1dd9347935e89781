"""The named algorithms as data: likelihood, inference, prior and loop of each.

Every published method is a row of `RECIPES`; estimators look their solver up here. `solve` takes a problem that was
posed with the row's likelihood and prior, the options and the settings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sparsebayes.engine import glm, regression
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.result import Result
from sparsebayes.engine.reweighted import Lasso


@dataclass(frozen=True)
class Options:
    """Options of a user that are no part of the problem."""

    rule: str = "fixed-point"
    """How precisions are re-estimated, all at once: "fixed-point" (MacKay) or "em"."""
    penalty: float = 1.0
    """Of an L1 norm."""
    lasso: Lasso | None = None
    """Solver of a lasso with one penalty per weight."""


@dataclass(frozen=True)
class Recipe:
    """One named algorithm."""

    name: str
    """The name in the literature."""
    likelihood: str
    inference: str
    prior: str
    loop: str
    source: str
    solve: Callable[[Any, Options, Settings], Result]


def _regression(solver: str, problem: Any, options: Options, settings: Settings) -> Result:
    return regression.solve(problem, solver, settings, lasso=options.lasso)


def _row(
    name: str, prior: str, inference: str, loop: str, source: str, solve: Any, likelihood: str = "bernoulli"
) -> Recipe:
    return Recipe(name, likelihood, inference, prior, loop, source, solve)


def _ard(problem: Any, options: Options, settings: Settings) -> Result:
    return glm.sparse(problem, options.rule, settings)


def _ridge(problem: Any, options: Options, settings: Settings) -> Result:
    return glm.ridge(problem, options.rule, settings)


def _reweighted(problem: Any, options: Options, settings: Settings) -> Result:
    assert options.lasso is not None
    return glm.reweighted_l1(problem, options.lasso, settings)


def _coordinate(problem: Any, options: Options, settings: Settings) -> Result:
    assert options.lasso is not None
    return glm.l1(problem, options.penalty, options.lasso, settings)


def _l1_by_scales(problem: Any, options: Options, settings: Settings) -> Result:
    return glm.l1_by_scales(problem, options.penalty, settings)


REGRESSION = {
    solver: Recipe(name, "gaussian", "exact", "ard", loop, source, partial(_regression, solver))
    for solver, name, loop, source in (
        ("sequential", "fast marginal likelihood", "search", "Tipping & Faul 2003"),
        ("fixed-point", "MacKay's fixed point", "batch, then search", "MacKay 1992, Tipping 2001"),
        ("em", "EM", "batch, then search", "Tipping 2001"),
        ("reweighted-l1", "iteratively reweighted L1", "chain of lassos, then search", "Wipf & Nagarajan 2008"),
    )
}
"""By the name of the solver."""

CLASSIFICATION = {
    (recipe.prior, recipe.inference): recipe
    for recipe in (
        _row("SLR-LAP", "ard", "laplace", "search, or batch without a price", "Yamashita et al. 2008", _ard),
        _row("SLR-VAR", "ard", "variational", "search, or batch without a price", "Yamashita et al. 2008", _ard),
        _row("reweighted L1", "ard", "reweighted-l1", "chain of L1 problems", "Wipf & Nagarajan 2008", _reweighted),
        _row("RLR-LAP", "ridge", "laplace", "batch", "Yamashita et al. 2008", _ridge),
        _row("RLR-VAR", "ridge", "variational", "batch", "Yamashita et al. 2008", _ridge),
        _row("L1-SLR-LAP", "laplace", "laplace", "batch", "Krishnapuram et al. 2005", _l1_by_scales),
        _row("L1-SLR-c", "laplace", "coordinate", "coordinate descent", "Krishnapuram et al. 2005", _coordinate),
    )
}
"""By prior and inference."""

RECIPES = [*REGRESSION.values(), *CLASSIFICATION.values()]
"""All of them."""


def inferences(prior: str) -> tuple[str, ...]:
    """The inferences that a prior of linear classifiers has."""
    return tuple(inference for known, inference in CLASSIFICATION if known == prior)
