"""`fit_blocks`: the same estimators on rows that are read in passes (docs/scaling.md)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from sklearn.base import _fit_context

from sparsebayes.core.arrays import to_numpy
from sparsebayes.core.basis import LinearBasis
from sparsebayes.core.likelihoods import Bernoulli, Likelihood, Poisson
from sparsebayes.core.mixtures import log_normal_moments
from sparsebayes.core.prices import PerUnit, classification_price
from sparsebayes.core.priors import ARD, VariationalGamma
from sparsebayes.core.statistics import Block, Counts, MomentsAbout, SiteMoments, SiteSums, Statistic, Targets, Total
from sparsebayes.core.types import FloatArray
from sparsebayes.data.blocks import Blocks, origin_of
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.passes import Passes
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.streamed import Streamed, Units
from sparsebayes.engine.streamed_vb import variational_bayes
from sparsebayes.estimators._base import progress, warn_unless_converged, watched, whole_fit
from sparsebayes.estimators._feature_prices import feature_prices
from sparsebayes.estimators._linear import LinearFit, glm_fit
from sparsebayes.estimators._validation import name_features

WIDEST = 10_000
"""Features up to which passes over blocks are made: their Gram matrix takes 800 MB then."""

S = TypeVar("S")


@dataclass(frozen=True)
class OfClass(Generic[S]):
    """A statistic of one class against the rest, or of the target as it is; classes have weights."""

    statistic: Statistic[S]
    label: Any
    labels: Any
    weights: FloatArray | None

    def of(self, block: Block) -> S:
        """Of one block."""
        t, weight = to_numpy(block.t), block.weight
        if self.weights is not None:
            own = self.weights[np.searchsorted(self.labels, t)]
            weight = own if weight is None else own * weight
        return self.statistic.of(block._replace(t=(t == self.label).astype(np.float64), weight=weight))


class BlocksMixin:
    """What `fit_blocks` of all estimators shares."""

    n_features_in_: int
    feature_names_in_: Any
    verbose: int

    def _begin(self, blocks: Blocks, checkpoint: Any) -> Passes:
        if not hasattr(blocks, "reduce"):
            raise TypeError(
                f"blocks must come from sparsebayes.read_blocks, not be a {type(blocks).__name__}: "
                "read_blocks takes Parquet files, memory maps, LazyFrames, Dask collections and iterators"
            )
        if blocks.n_features > WIDEST:
            raise ValueError(
                f"blocks have {blocks.n_features} features, but passes are made for up to {WIDEST}: choose some of "
                "them (features=...), or fit a sample of the rows in memory"
            )
        name_features(self, blocks.n_features, blocks.feature_names)
        return Passes(blocks, checkpoint)

    def _refuse(self, **needed: Any) -> None:
        """Refuse parameters that passes over blocks do not serve, and say which values they do."""
        for name, values in needed.items():
            if getattr(self, name) not in values:
                raise ValueError(
                    f"fit_blocks needs {name}={' or '.join(map(repr, values))}, not {getattr(self, name)!r}; "
                    "or fit a sample of the rows in memory"
                )


class BlockPassesMixin(BlocksMixin):
    """`fit_blocks` of classes and counts: several passes."""

    def _by_passes(self, passes: Passes) -> None:
        """Fit and store the model."""
        raise NotImplementedError

    @whole_fit
    @_fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit_blocks(self, blocks: Blocks, checkpoint: Any = None) -> Any:
        """Fit the model by passes over blocks of rows (docs/scaling.md says how many).

        The answer of linear models is that of `fit`; sparse ones are the best single models, and counts have exposure
        one. Kernel models choose width and centres by a random sample of 5,000 rows.

        Parameters
        ----------
        blocks : Blocks
            From `read_blocks`.
        checkpoint : path, optional
            Folder in which the result of each pass is kept. A fit that is run again with the same folder goes on.
        """
        self._by_passes(self._begin(blocks, checkpoint))
        return self


class BlockMomentsMixin(BlocksMixin):
    """`fit_blocks` of a regression with Gaussian noise: one pass."""

    fit_moments: Callable[..., Any]

    def fit_blocks(self, blocks: Blocks, checkpoint: Any = None) -> Any:
        """Fit the model in one pass over blocks of rows; the answer is that of `fit` on all rows.

        Parameters
        ----------
        blocks : Blocks
            From `read_blocks`.
        checkpoint : path, optional
            Folder in which the result of the pass is kept. A fit that is run again with the same folder reads it.
        """
        passes = self._begin(blocks, checkpoint)
        first = blocks.first()
        t = np.asarray(to_numpy(first.t))
        origin = np.append(origin_of(first.X), origin_of(t.reshape(len(t), -1)))
        moments = passes.reduce(MomentsAbout(origin))
        return self.fit_moments(moments, blocks.feature_names)


def standard_units(first: SiteSums, origin: FloatArray, centre: bool) -> tuple[Units, SiteSums]:
    """Means and root mean squares of the columns, and the sums of the first pass in these units.

    At the model without weights all rows have the same curvature, so that the sums hold the moments of X.
    """
    shift = first.sums / first.total if centre else np.zeros_like(origin)
    sums = first.sums - first.total * shift
    products = first.products - np.multiply.outer(shift, first.sums) - np.multiply.outer(sums, shift)
    square = np.maximum(products.diagonal(), 0.0)
    lost = square <= 8 * np.sqrt(first.n) * np.finfo(np.float64).eps * first.products.diagonal()
    unit = np.where(lost, np.inf, np.sqrt(square / first.total))
    units = Units(origin + shift, unit)
    moved = replace(first, sums=sums, products=products, slopes=first.slopes - first.slope * shift)
    return units, units.standard(moved, np.arange(len(unit)))


class BlockSearchMixin(BlockPassesMixin):
    """`fit_blocks` of sparse models of classes and counts: a few wide passes, and narrow ones."""

    fit_intercept: bool
    average: Any
    groups: Any
    min_gain: Any
    max_scale: float
    tol: float
    max_iter: int

    def _no_average(self) -> None:
        if self.groups is not None:
            raise ValueError("fit_blocks of classes and counts needs groups=None; or fit a sample in memory")
        if self.average is True:
            raise ValueError("fit_blocks does not average classes and counts over models: set average=False or 'auto'")

    def _search(
        self, passes: Passes, likelihood: Likelihood, level: float, reduce: Callable[..., SiteSums]
    ) -> LinearFit:
        """The best single model, in the data's units."""
        blocks, D = passes.blocks, passes.blocks.n_features
        origin = origin_of(blocks.first().X) if self.fit_intercept else np.zeros(D)
        first = reduce(SiteMoments(likelihood, origin, np.zeros(D), level), None)
        units, sums = standard_units(first, origin, self.fit_intercept)
        price = PerUnit(feature_prices(self, classification_price(first.n, D)))
        if np.max(price.nats) == 0:
            raise ValueError("fit_blocks needs a positive min_gain, or 'auto': without a price most features stay")
        usable = np.isfinite(units.unit)
        prior = ARD(min_alpha=(float(usable.mean()) if isinstance(likelihood, Bernoulli) else 1.0) / self.max_scale**2)
        settings = Settings(self.tol, self.max_iter, progress(self.verbose))
        search = Streamed(D, likelihood, price, prior, self.fit_intercept, settings, reduce, units=units, n_wide=1)
        result = search.run(sums, level)
        known = Problem(
            design=DenseRows(np.empty((0, D)), units.origin, units.unit, np.empty(0)),
            t=np.empty(0), weight=np.array([first.n]), likelihood=likelihood, prior=prior, price=price,
            flat_intercept=self.fit_intercept,
        )  # fmt: skip
        return glm_fit(known, result, D)


class BlockClassesMixin(BlockPassesMixin):
    """Classes of blocks: their labels and weights, found by a pass over the target alone."""

    class_weight: Any
    classes_: Any

    def _classes(self, passes: Passes) -> tuple[Counts, FloatArray | None]:
        """Labels with the weight of their rows, and weights of the classes."""
        counts = passes.reduce(Targets(), np.empty(0, dtype=np.intp))
        counts = Counts(counts.values[counts.weight > 0], counts.weight[counts.weight > 0])
        if len(counts.values) < 2:
            raise ValueError("y holds one class only; a classifier needs at least 2 classes")
        self.classes_ = counts.values
        weights = None
        if self.class_weight == "balanced":
            weights = counts.weight.sum() / (len(counts.values) * counts.weight)
        elif self.class_weight is not None:
            weights = np.array([float(self.class_weight.get(label, 1.0)) for label in counts.values.tolist()])
        return counts, weights

    def _each_class(self, passes: Passes) -> Iterator[tuple[float, Callable[..., SiteSums], float]]:
        """Base level, how to make a pass and number of rows, for each class against the rest (for two: the second)."""
        return self._against_the_rest(passes, *self._classes(passes))

    def _against_the_rest(
        self, passes: Passes, counts: Counts, weights: FloatArray | None
    ) -> Iterator[tuple[float, Callable[..., SiteSums], float]]:
        """The same for known classes."""
        weight = counts.weight if weights is None else counts.weight * weights
        for label, own in list(zip(counts.values, weight, strict=True))[1 if len(weight) == 2 else 0 :]:

            def reduce(statistic: Any, columns: Any = None, label: Any = label) -> SiteSums:
                return passes.reduce(OfClass(statistic, label, counts.values, weights), columns)

            yield float(np.log(own / (weight.sum() - own))), reduce, float(weight.sum())


class BlockLogisticMixin(BlockSearchMixin, BlockClassesMixin):
    """`fit_blocks` of sparse logistic regression."""

    _forget_averages: Callable[[], None]
    _store: Callable[[Sequence[LinearFit]], None]

    def _by_passes(self, passes: Passes) -> None:
        """Fit and store the model."""
        flat = ("flat",) if self.fit_intercept else ("flat", "ard")
        self._refuse(prior=("ard",), inference=("laplace",), intercept_prior=flat, multi_class=("auto", "one-vs-rest"))
        self._no_average()
        self._forget_averages()
        classes = self._each_class(passes)
        level = [(base if self.fit_intercept else 0.0, reduce) for base, reduce, _ in classes]
        self._store([self._search(passes, Bernoulli(), base, reduce) for base, reduce in level])
        warn_unless_converged(self)


class BlockCountsMixin(BlockSearchMixin):
    """`fit_blocks` of Poisson regression."""

    _forget_averages: Callable[[], None]
    _store: Callable[..., None]
    dispersion_: float

    def _by_passes(self, passes: Passes) -> None:
        """Fit and store the model."""
        self._no_average()
        self._refuse(distribution=("poisson",))
        self._forget_averages()
        events = passes.reduce(Events(), np.empty(0, dtype=np.intp))
        if self.fit_intercept and not events.value > 0:
            raise ValueError("y is zero in every row: the log rate has no finite estimate")
        level = float(np.log(events.value / events.n)) if self.fit_intercept else 0.0
        fit = self._search(passes, Poisson(), level, passes.reduce)
        self._store([fit], single=True)
        pearson = passes.reduce(Pearson(fit), fit.active)
        left = pearson.n - fit.basis.ones - float(fit.gamma.sum())
        self.dispersion_ = pearson.value / max(left, 1.0)
        warn_unless_converged(self)


@dataclass(frozen=True)
class Events:
    """Number of events, and a look at the counts."""

    def of(self, block: Block) -> Total:
        """Of one block."""
        t = np.asarray(to_numpy(block.t), dtype=np.float64)
        if (t < 0).any():
            row = int(np.argmax(t < 0))
            raise ValueError(f"y has a negative value in {block.where}, row {row} of the block: counts are expected")
        weight = np.ones(len(t)) if block.weight is None else np.asarray(block.weight)
        return Total(float(weight.sum()), float(weight @ t))


@dataclass(frozen=True)
class Pearson:
    """Pearson's χ² of a fit, on the columns that it keeps."""

    fit: LinearFit

    def of(self, block: Block) -> Total:
        """Of one block."""
        t = np.asarray(to_numpy(block.t), dtype=np.float64)
        basis = LinearBasis(np.arange(len(self.fit.active)), self.fit.basis.reference, self.fit.basis.ones)
        X = np.asarray(to_numpy(block.X), dtype=np.float64)
        mean, _ = log_normal_moments(*replace(self.fit, basis=basis).latent_moments(X))
        weight = np.ones(len(t)) if block.weight is None else np.asarray(block.weight)
        return Total(float(weight.sum()), float(weight @ ((t - mean) ** 2 / mean)))


class BlockVariationalMixin(BlockClassesMixin):
    """`fit_blocks` of variational logistic regression: one pass for each iteration."""

    fit_intercept: bool
    ard: bool
    a0: float
    b0: float
    tol: float
    max_iter: int
    n_samples_seen_: float
    _beliefs: Any
    _store: Callable[[Sequence[LinearFit]], None]

    def _by_passes(self, passes: Passes) -> None:
        """Fit and store the model."""
        D = passes.blocks.n_features
        origin = origin_of(passes.blocks.first().X) if self.fit_intercept else np.zeros(D)
        prior = VariationalGamma(self.a0, self.b0, shared=not self.ard)
        fits = []
        for _, reduce, n in self._each_class(passes):
            settings = Settings(self.tol, self.max_iter, progress(self.verbose))
            result = variational_bayes(reduce, origin, prior, self.fit_intercept, settings)
            known = Problem(
                design=DenseRows(np.empty((0, D)), origin, np.ones(D), np.empty(0)), t=np.empty(0),
                weight=np.array([n]), likelihood=Bernoulli(), prior=prior, flat_intercept=self.fit_intercept,
            )  # fmt: skip
            fits.append(glm_fit(known, result, D))
            self.n_samples_seen_ = n
        self._store(fits)
        self._beliefs = None
        warn_unless_converged(self)
