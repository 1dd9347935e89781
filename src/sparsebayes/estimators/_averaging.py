"""What the linear estimators that average over models share: parameters, fitted attributes, claims."""

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.credible import CLAIMED, CredibleSet, credible_sets
from sparsebayes.core.types import AnyArray, FloatArray
from sparsebayes.data.design import FeatureDesign
from sparsebayes.engine.averaging import AGREEMENT
from sparsebayes.engine.model_average import Chains, Odds
from sparsebayes.estimators._averaged import AveragedFit
from sparsebayes.estimators._base import progress
from sparsebayes.estimators._linear import LinearFit

WIDEST = 20_000
"""Features up to which average="auto" averages: about ten seconds' work."""
MAX_RANK = 2000
"""Rows or features, whichever is less, up to which it does: a flip changes a matrix of that size at most. With 5,000
features and 200,000 rows the chains took 90 s."""
CANDIDATES = 500
"""Most probable features among which credible sets are looked for."""

PARAMETERS: dict[str, list[Any]] = {
    "average": ["boolean", StrOptions({"auto"})],
    "n_chains": [Interval(Integral, 1, None, closed="left")],
    "max_flips": [Interval(Integral, 1, None, closed="left")],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}


AVERAGES = (
    "_singles",
    "_credible",
    "inclusion_probability_",
    "coef_std_",
    "n_features_posterior_",
    "chain_error_",
    "effective_sample_size_",
    "n_flips_",
    "link_",
)
"""Fitted attributes that only an averaged model has."""


class AveragingMixin:
    """Parameters `average`, `n_chains`, `max_flips`, `n_jobs` and `random_state`, and what a fit makes of them."""

    average: bool | str
    n_chains: int
    max_flips: int
    n_jobs: int | None
    random_state: Any
    verbose: int
    min_gain: Any
    n_features_in_: int
    relevance_: FloatArray
    _fits: Sequence[LinearFit]
    coef_: FloatArray
    inclusion_probability_: FloatArray
    _singles: Sequence[LinearFit]
    """The best single models, where `_fits` are averages."""
    _credible: list[list[CredibleSet]]
    _store_single: Callable[[Sequence[LinearFit]], None]

    def _chooses_average(self, shape: tuple[float, int], missing: list[str], n_outputs: int = 1) -> bool:
        """Whether to average: "auto" does where that takes seconds and no price for a single model was set.

        `shape` are the numbers of rows and features; `missing` names the settings without which there is no averaged
        form. Where outputs share their features a flip changes numbers of every output.
        """
        if self.average is True and missing:
            raise ValueError(f"average=True needs {' and '.join(missing)}; set them, or average=False")
        if self.average != "auto":
            return bool(self.average)
        takes_seconds = shape[1] * n_outputs <= WIDEST and min(shape) <= MAX_RANK
        return not missing and takes_seconds and not isinstance(self.min_gain, Real)

    def _forget_averages(self) -> None:
        """Remove what an earlier fit has averaged: this one may not."""
        for name in AVERAGES:
            vars(self).pop(name, None)

    def _single_fits(self) -> Sequence[LinearFit]:
        """The best single models of an earlier fit, if there was one."""
        return getattr(self, "_singles", None) or getattr(self, "_fits", [])

    @property
    def model_(self) -> Any:
        """The best single model, as an estimator of its own (this one, if it does not average)."""
        check_is_fitted(self)
        if not hasattr(self, "_singles"):
            return self
        model = copy(self)
        model._forget_averages()
        model.average = False
        model._store_single(self._singles)
        return model

    @property
    def credible_sets_(self) -> Any:
        """Sets of correlated features of which at least one matters; for several fits, a list for each."""
        if not hasattr(self, "_credible"):
            raise AttributeError("only a model that averages has credible_sets_")
        single = getattr(self, "_single", len(self._credible) == 1)
        return self._credible[0] if single else self._credible

    def _chains(self) -> Chains:
        """The chains that the parameters ask for."""
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return Chains(self.n_chains, self.max_flips, seed, self.n_jobs, progress(self.verbose))

    def _odds(self, nats: FloatArray | float, usual: float, usable: AnyArray) -> Odds:
        """What prices say about features beforehand; "auto" says nothing."""
        return Odds.of(None if isinstance(self.min_gain, str) else nats, usual, usable)

    def _store_averages(self, fits: Sequence[AveragedFit], designs: Sequence[FeatureDesign], *, single: bool) -> None:
        """Fitted attributes of the averaged model; those of the best single model have been stored before."""
        self._singles, self._fits = self._fits, fits
        coef = np.zeros((len(fits), self.n_features_in_))
        for row, fit in zip(coef, fits, strict=True):
            row[fit.active] = fit.coef
        shape = self.coef_.shape
        self.coef_ = coef.reshape(shape)
        self.coef_std_ = np.reshape([fit.std for fit in fits], shape)
        self.inclusion_probability_ = np.reshape([fit.probability for fit in fits], shape)
        self.n_features_posterior_ = _several([np.trim_zeros(fit.sizes, "b") for fit in fits], single)
        self.active_ = _several([np.flatnonzero(fit.probability >= CLAIMED) for fit in fits], single)
        # Outputs that share their features have one set of models, and one array of its probabilities.
        distinct = {id(fit.probability): (fit, design) for fit, design in zip(fits, designs, strict=True)}
        found = {key: sets_of(*each) for key, each in distinct.items()}
        self._credible = [found[id(fit.probability)] for fit in fits]
        self.chain_error_ = max(fit.error for fit in fits)
        self.effective_sample_size_ = min(fit.effective_size for fit in fits)
        self.n_flips_ = max(fit.n_flips for fit in fits)
        if self.chain_error_ > AGREEMENT:
            self.converged_ = False
            warnings.warn(
                f"the chains do not agree: the standard error of an inclusion probability is {self.chain_error_:.2f} "
                f"after {self.n_flips_} flips of each. Raise max_flips (now {self.max_flips}) or n_chains.",
                ConvergenceWarning,
                stacklevel=2,
            )

    def get_support(self, indices: bool = False, *, probability: float = CLAIMED) -> AnyArray:
        """Features that are claimed (for several outputs: by any of them), as a mask or as indices.

        With averaging these are the features whose inclusion probability is at least `probability`; otherwise those
        that the single model keeps.
        """
        check_is_fitted(self)
        if not hasattr(self, "inclusion_probability_"):
            mask = np.asarray((np.atleast_2d(self.relevance_) > 0).any(axis=0))
        else:
            mask = np.asarray((np.atleast_2d(self.inclusion_probability_) >= probability).any(axis=0))
        return np.flatnonzero(mask) if indices else mask


def sets_of(fit: AveragedFit, design: FeatureDesign) -> list[CredibleSet]:
    """The credible sets of one fit."""
    places = np.argsort(-fit.probability[fit.active], kind="stable")[:CANDIDATES]
    features = fit.active[places]
    correlation = design.correlation(features)
    return credible_sets(features, fit.draws[:, places] != 0, fit.share, fit.probability[features], correlation)


def _several(parts: list[AnyArray], single: bool) -> Any:
    return parts[0] if single else parts
