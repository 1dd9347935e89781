"""Simulated data of many kinds with known weights, for the benchmarks of model averaging.

`DESIGNS`, `NOISE` and `TRIOS` are regressions, `CLASS_DESIGNS` two-class problems. Unless a regression says otherwise,
it has 100 rows, 200 features, 8 of them true, and a signal with three times the variance of the noise (SNR 3). Signals
have variance 1, so the noise has standard deviation 1/√SNR.
"""

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from scipy.ndimage import gaussian_filter, gaussian_filter1d
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

# --- Inputs: functions of a generator, the number of rows and the number of columns ---


def independent(rng, n, d):
    return rng.standard_normal((n, d))


def autoregressive(rho):
    """Neighbouring columns have correlation `rho`, columns at distance k have rho^k."""

    def columns(rng, n, d):
        X = rng.standard_normal((n, d))
        for j in range(1, d):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
        return X

    return columns


def blocks(rho, size=10):
    """Blocks of `size` neighbouring columns; two columns of a block have correlation `rho`."""

    def columns(rng, n, d):
        shared = np.repeat(rng.standard_normal((n, -(-d // size))), size, axis=1)[:, :d]
        return np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.standard_normal((n, d))

    return columns


def equicorrelated(rng, n, d, rho=0.5):
    return np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1 - rho) * rng.standard_normal((n, d))


def near_duplicates(rng, n, d):
    """Columns 2k and 2k + 1 measure the same quantity and have correlation 0.995."""
    return blocks(0.995, size=2)(rng, n, d)


def factors(rng, n, d, n_factors=5):
    """Five hidden factors explain 80 % of the variance of an average column."""
    loadings = rng.standard_normal((n_factors, d)) * np.sqrt(0.8 / n_factors)
    return rng.standard_normal((n, n_factors)) @ loadings + np.sqrt(0.2) * rng.standard_normal((n, d))


def counts(rng, n, d):
    """Poisson counts with rates between 0.2 and 5."""
    return rng.poisson(np.exp(rng.uniform(np.log(0.2), np.log(5), d)), (n, d)).astype(float)


def lognormal(rng, n, d):
    return np.exp(rng.standard_normal((n, d)))


def sparse_binary(rng, n, d):
    """0/1 columns, true in 3 to 30 % of the rows."""
    return (rng.random((n, d)) < rng.uniform(0.03, 0.3, d)).astype(float)


def snps(rng, n, d):
    """Numbers of minor alleles (0, 1, 2) in linkage disequilibrium: two haplotypes, each a thresholded AR(1) chain."""
    alleles = autoregressive(0.95)(rng, 2 * n, d) < norm.ppf(rng.uniform(0.1, 0.5, d))
    return alleles[:n].astype(float) + alleles[n:]


def mixtures(rng, n, d, n_substances=8):
    """Absorbance of mixtures, and how much of each substance is in them.

    Each substance has three bands on one axis of wavelengths. The baseline drifts, and every reading has some noise.
    """
    axis = np.linspace(0, 1, d)
    bands = n_substances, 3, 1
    centres, widths, heights = rng.uniform(0, 1, bands), rng.uniform(0.02, 0.08, bands), rng.uniform(0.3, 1, bands)
    pure = (heights * np.exp(-0.5 * ((axis - centres) / widths) ** 2)).sum(axis=1)
    baseline = 0.1 * (rng.standard_normal((n, 1)) + rng.standard_normal((n, 1)) * axis)
    amounts = rng.uniform(0, 1, (n, n_substances))
    return amounts @ pure + baseline + 0.01 * rng.standard_normal((n, d)), amounts


def one_hot(rng, n, d, n_levels=5):
    """Categorical variables with five levels of unequal frequency, one column for each level."""
    columns = np.zeros((n, d))
    for first in range(0, d, n_levels):
        level = rng.choice(n_levels, n, p=rng.dirichlet(np.full(n_levels, 5.0)))
        columns[np.arange(n), first + level] = 1.0
    return columns


def images(rng, n, d):
    """Square images of white noise, smoothed: neighbouring pixels have correlation 0.78."""
    side = int(np.sqrt(d))
    X = gaussian_filter(rng.standard_normal((n, side, side)), sigma=(0, 1, 1))
    return X.reshape(n, d) / X.std()


def mixed_units(rng, n, d):
    """A third of the columns normal, a third lognormal, a third 0/1; units between 1e-4 and 1e4."""
    kind = rng.permuted(np.arange(d) % 3)
    X = rng.standard_normal((n, d))
    X[:, kind == 1] = np.exp(X[:, kind == 1])
    X[:, kind == 2] = X[:, kind == 2] > 0
    return (X + rng.uniform(-3, 3, d)) * 10.0 ** rng.uniform(-4, 4, d)


def lagged_channels(rng, n, d, n_lags=10):
    """Smooth channels, each at ten lags, from one long recording: the rows are neighbours in time too."""
    n_channels = d // n_lags
    signal = gaussian_filter1d(rng.standard_normal((n + n_lags, n_channels)), sigma=1.5, axis=0)
    lags = [signal[lag : lag + n] for lag in range(n_lags)]
    return np.stack(lags, axis=-1).reshape(n, d) / signal.std()


def heavy_tailed(rng, n, d):
    """Student's t with 2.5 degrees of freedom: single entries dominate their column."""
    return rng.standard_t(2.5, (n, d))


def three_alike(rho):
    """The first three columns have correlation `rho` with each other, the rest are independent."""

    def columns(rng, n, d):
        return np.hstack([blocks(rho, size=3)(rng, n, 3), rng.standard_normal((n, d - 3))])

    return columns


# --- Which features are true, and their weights in units of standardised columns ---


def anywhere(rng, d, n_true):
    """Random features, random signs, sizes between 0.5 and 1.5."""
    w = np.zeros(d)
    w[rng.choice(d, n_true, replace=False)] = rng.choice([-1.0, 1.0], n_true) * rng.uniform(0.5, 1.5, n_true)
    return w


def none(rng, d, n_true):
    """Pure noise."""
    return np.zeros(d)


def one_of_three(rng, d, n_true):
    """One of the first three features."""
    w = np.zeros(d)
    w[rng.integers(3)] = 1.0
    return w


def weak(rng, d, n_true):
    """Random features and normal weights: many are small."""
    w = np.zeros(d)
    w[rng.choice(d, n_true, replace=False)] = rng.standard_normal(n_true)
    return w


def decaying(rng, d, n_true):
    """Each weight is 0.8 times the one before; random order and signs."""
    w = np.zeros(d)
    w[rng.choice(d, n_true, replace=False)] = rng.choice([-1.0, 1.0], n_true) * 0.8 ** np.arange(n_true)
    return w


def neighbours(rng, d, n_true):
    """Two runs of neighbouring features; one sign for each run."""
    w, half = np.zeros(d), n_true // 2
    for start in rng.choice(d // half, 2, replace=False) * half:
        w[start : start + half] = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5, half)
    return w


def patch(rng, d, n_true):
    """A square patch of pixels with equal weights."""
    side, width = int(np.sqrt(d)), int(np.sqrt(n_true))
    w = np.zeros((side, side))
    top, left = rng.integers(0, side - width, 2)
    w[top : top + width, left : left + width] = 1.0
    return w.ravel()


# --- Noise: functions of a generator, the standardised inputs and which rows are for training; variance 1 ---


def gaussian(rng, Z, train):
    return rng.standard_normal(len(Z))


def student3(rng, Z, train):
    """Student's t with 3 degrees of freedom, whose variance is 3."""
    return rng.standard_t(3, len(Z)) / np.sqrt(3)


def outliers(rng, Z, train):
    """Gaussian, and 5 % of the training rows are moved by 5 to 10 standard deviations. Fresh rows are clean."""
    noise = rng.standard_normal(len(Z))
    bad = np.flatnonzero(train & (rng.random(len(Z)) < 0.05))
    noise[bad] += rng.choice([-1, 1], len(bad)) * rng.uniform(5, 10, len(bad))
    return noise


def heteroscedastic(rng, Z, train):
    """The standard deviation grows with the first column: e^(z/2), scaled to mean variance 1."""
    return rng.standard_normal(len(Z)) * np.exp(0.5 * Z[:, 0] - 0.25)


def curved(rng, Z, train):
    """Half of the variance is a square of the first column, which no linear model can fit."""
    return np.sqrt(0.5) * ((Z[:, 0] ** 2 - 1) / np.sqrt(2) + rng.standard_normal(len(Z)))


# --- Designs ---


@dataclass(frozen=True)
class Draw:
    """One data set. `weights` and `true` are None where no feature is true or false."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    true: np.ndarray | None
    weights: np.ndarray | None
    noise: float
    """Error of the true function on the fresh rows: no prediction is expected to be better."""


@dataclass(frozen=True)
class Kind:
    """Inputs and a linear signal; results are stored under the name."""

    name: str
    columns: Callable = independent
    n_samples: int = 100
    n_features: int = 200
    n_true: int = 8
    effects: Callable = anywhere

    def _generator(self, seed):
        """The data of a seed do not depend on what else is run."""
        return np.random.default_rng([seed, crc32(self.name.encode())])

    def _truth(self, rng, n):
        """Inputs, the signal with variance 1, and its weights."""
        X = self.columns(rng, n, self.n_features)
        weights = self.effects(rng, self.n_features, self.n_true) / X.std(axis=0)
        spread = (X @ weights).std()
        if spread > 0:
            weights /= spread
        return X, X @ weights, weights


@dataclass(frozen=True)
class Design(Kind):
    """A kind of regression; `unit` multiplies the target, noise included."""

    snr: float = 3.0
    noise: Callable = gaussian
    unit: float = 1.0

    def draw(self, seed, n_test=1000):
        """Training rows, fresh rows and the truth."""
        rng = self._generator(seed)
        X, signal, weights = self._truth(rng, self.n_samples + n_test)
        train = np.arange(len(X)) < self.n_samples
        noise = self.noise(rng, (X - X.mean(axis=0)) / X.std(axis=0), train)
        y = self.unit * (signal + noise / np.sqrt(self.snr))
        if weights is None:
            true, best = None, signal
        else:
            true, best = np.flatnonzero(weights), X @ weights
            weights = self.unit * weights
        error = np.sqrt(np.mean((y - self.unit * best)[~train] ** 2))
        return Draw(X[train], y[train], X[~train], y[~train], true, weights, float(error))


class Concentration(Design):
    """The target is the amount of one substance of a mixture, seen through its spectrum."""

    def _truth(self, rng, n):
        X, amounts = mixtures(rng, n, self.n_features)
        return X, (amounts[:, 0] - amounts[:, 0].mean()) / amounts[:, 0].std(), None


class MissingGroups(Design):
    """Ten instruments of equally many columns; each fails in 15 % of the rows, which are filled with the mean.

    The target depends on the values that were not recorded too, so the weights are the true ones, and rows with
    failures have more noise.
    """

    def _truth(self, rng, n):
        X, signal, weights = super()._truth(rng, n)
        failed = np.repeat(rng.random((n, 10)) < 0.15, self.n_features // 10, axis=1)
        return np.where(failed, 0.0, X), signal, weights


DESIGNS = [
    Design("independent"),
    Design("AR(1) 0.8", autoregressive(0.8)),
    Design("AR(1) 0.95", autoregressive(0.95)),
    Design("blocks 0.9", blocks(0.9)),
    Design("blocks 0.99", blocks(0.99)),
    Design("near-duplicates", near_duplicates),
    Design("equicorrelated 0.5", equicorrelated),
    Design("five factors", factors),
    Design("counts", counts),
    Design("lognormal", lognormal),
    Design("sparse 0/1", sparse_binary),
    Design("t3 noise", noise=student3),
    Design("5 % outliers", noise=outliers),
    Design("unequal noise", noise=heteroscedastic),
    Design("curved", noise=curved),
    Design("one true", n_true=1),
    Design("30 weak", n_true=30, snr=1.0, effects=weak),
    Design("100 of 200", n_true=100),
    Design("40 decaying", n_true=40, effects=decaying),
    Design("SNPs in LD", snps, snr=1.0),
    Design("n = 30, D = 50", n_samples=30, n_features=50, n_true=4),
    Design("n = 500", n_samples=500),
    Design("100×1,000", n_features=1_000),
    Design("100×1,000, blocks 0.9", blocks(0.9), n_features=1_000),
    Design("SNR 10", snr=10.0),
    Design("SNR 1", snr=1.0),
    Design("SNR 0.1", snr=0.1),
    Design("spectra, true bands", lambda *size: mixtures(*size)[0], effects=neighbours),
    Concentration("spectra, concentration", snr=100.0),
    Design("one-hot columns", one_hot),
    Design("smooth images", images, n_features=196, n_true=9, effects=patch),
    Design("mixed units", mixed_units, unit=1_000.0),
    MissingGroups("missing groups"),
    Design("lagged channels", lagged_channels, effects=neighbours),
]
"""Regressions whose test error is compared."""

NOISE = [
    Design("pure noise", effects=none),
    Design("pure noise, AR(1) 0.95", autoregressive(0.95), effects=none),
    Design("pure noise, 100×1,000", effects=none, n_features=1_000),
]
"""Nothing to find."""

TRIOS = [
    Design(f"trio {rho}", three_alike(rho), n_features=50, n_true=1, snr=1.0, effects=one_of_three)
    for rho in (0.9, 0.95, 0.99)
]
"""One of three correlated features is true; 47 more carry nothing."""


@dataclass(frozen=True)
class ClassDesign(Kind):
    """A kind of two-class problem: logits with standard deviation `strength`, a share `rate` of rows in class 1."""

    n_samples: int = 200
    strength: float = 3.0
    rate: float = 0.5

    def draw(self, seed, n_test=2000):
        """Training rows, fresh rows and the truth; `noise` is the error of the true probabilities."""
        rng, n = self._generator(seed), self.n_samples
        X, signal, weights = self._truth(rng, n + n_test)
        logit = self.strength * signal
        # The mean probability is near 0 or 1 when the shift dominates every logit.
        far = 10 + np.abs(logit).max()
        p = expit(logit + brentq(lambda shift: expit(logit + shift).mean() - self.rate, -far, far))
        y = (rng.random(len(p)) < p).astype(int)
        error = float(np.minimum(p, 1 - p)[n:].mean())
        return Draw(X[:n], y[:n], X[n:], y[n:], np.flatnonzero(weights), self.strength * weights, error)


CLASS_DESIGNS = [
    ClassDesign("sparse"),
    ClassDesign("AR(1) 0.8", autoregressive(0.8)),
    ClassDesign("blocks 0.9", blocks(0.9)),
    ClassDesign("100 of 200 weak", n_true=100, effects=weak),
    # Two whole modules of 20 genes differ between the classes.
    ClassDesign(
        "gene modules, 60×2,000", blocks(0.7, size=20), n_samples=60, n_features=2_000, n_true=40, effects=neighbours
    ),
    ClassDesign("rare class", n_samples=400, rate=0.08),
    ClassDesign("heavy-tailed", heavy_tailed),
]
"""Two-class problems with known weights."""
