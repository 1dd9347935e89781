"""Relevance vector machine for regression."""

import warnings
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.predictive import pooled_freedom
from sparsebayes.core.types import FloatArray
from sparsebayes.estimators._base import progress, threads_for, whole_fit
from sparsebayes.estimators._kernel import (
    KERNEL_CONSTRAINTS,
    Dictionary,
    FarVariance,
    KernelFit,
    KernelMixin,
    dictionary,
    first_gamma,
    gamma_of_evidence,
    has_gamma,
    kernel_of,
)
from sparsebayes.estimators._linear import Units, constant_fit
from sparsebayes.estimators._regressor import GaussianRegressor
from sparsebayes.solvers.loop import Settings, warn_not_converged
from sparsebayes.solvers.problem import NOISE_FLOOR, Solution
from sparsebayes.solvers.rvm import KernelProblem, maximum, solve
from sparsebayes.solvers.width import Fit, gaussian_evidence


@dataclass(frozen=True)
class Target:
    """An output in standard units, and how it came there: y = centre + unit t."""

    t: FloatArray
    weight: FloatArray
    centre: float
    unit: float
    flat: bool
    constant: bool

    def problem(self, rows: Any) -> KernelProblem:
        """The regression of this output on standardised columns, with flat hyper-priors."""
        total, none = float(self.weight.sum()), np.zeros(rows.n_columns)
        return KernelProblem(rows, self.t, total, self.flat, price=0.0, a=0.0, b=none, c=0.0, d=0.0)


class RVMRegressor(KernelMixin, GaussianRegressor):
    """Relevance vector machine: regression with a few kernel functions, centred on training rows.

    Every kernel function has a weight with a zero-mean Gaussian prior and its own precision. The precisions and the
    noise are those of largest evidence; most precisions run to infinity, and the rows whose weights stay are the
    *relevance vectors*.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel, by name or as a function of two sets of rows that returns the matrix of their kernel values. It need
        not be positive definite. With "precomputed", X is the design itself: one column per candidate, square or not,
        and for predictions the same columns for the new rows.
    gamma : "scale", "evidence" or float, default="scale"
        γ of the kernels "rbf", exp(-γ‖x - z‖²), "laplacian", "poly" and "sigmoid". "scale" is
        1 / (n_features × X.var()); "evidence", for "rbf" and "laplacian", finds the γ of largest evidence, at the cost
        of some twenty fits.
    degree : float, default=3
        Degree of "poly", (γ xᵀz + coef0)^degree.
    coef0 : float, default=1.0
        Constant of "poly" and "sigmoid".
    solver : {"sequential", "fixed-point", "em"}, default="sequential"
        "sequential" adds, re-estimates or deletes one vector at a time (Tipping & Faul 2003); "fixed-point" (MacKay)
        and "em" begin with all of them and re-estimate all precisions at once (Tipping 2001).
    candidates : None, int or array-like of shape (n_candidates, n_features), default=None
        The centres to choose from: all training rows, so many of them drawn at random, or these points.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    intercept_prior : {"flat", "ard"}, default="flat"
        A flat prior, integrated out exactly; or one more weight with its own precision, as in SparseBayes.
    far_variance : {"none", "augment"}, default="none"
        The variance of a relevance vector machine shrinks to the noise away from its vectors. "augment" gives each new
        point a basis function of its own, which brings the variance back where there are no data. The training rows are
        then kept for predictions.
    max_iter : int, default=10000
        Largest number of steps of a stage (iterations of a batch solver, actions of the search).
    tol : float, default=1e-6
        The fit has converged when no single change of a precision or of the noise gains more than this many nats.
    random_state : int, RandomState or None, default=None
        Which rows an integer `candidates` draws.
    verbose : int, default=0
        Tell on standard error how the fit goes.

    Attributes
    ----------
    relevance_vectors_ : ndarray of shape (n_vectors, n_features) or None
        The kept centres; None for a precomputed kernel. For 2-D y, this and all arrays below are lists with one array
        per output.
    relevance_indices_ : ndarray of int
        Rows of X (or of `candidates`; for a precomputed kernel the columns) that the vectors are.
    dual_coef_ : ndarray of shape (n_vectors,)
        Posterior mean of the kept weights.
    intercept_ : float or ndarray of shape (n_outputs,)
        Constant of the expansion Σ dual_coef_ k(x, relevance_vectors_) + intercept_.
    precision_ : ndarray of shape (n_vectors,)
        Prior precisions of the kept weights.
    covariance_ : ndarray of shape (n_vectors, n_vectors)
        Posterior covariance of the kept weights.
    relevance_ : ndarray of shape (n_vectors,)
        γ in [0, 1]: how well the data determine each kept weight.
    noise_variance_ : float or ndarray of shape (n_outputs,)
        Variance of the noise, by evidence.
    excess_variance_ : float or ndarray of shape (n_outputs,)
        Variance of new observations that neither noise nor posterior account for, found by holding rows out one by one.
        Zero where the model says the truth about itself; predictions include it.
    gamma_ : float or None
        γ that was used; None for kernels without it.
    log_evidence_ : float or ndarray of shape (n_outputs,)
        Log probability (density) of y with the weights integrated out; a flat intercept is integrated against density
        one.
    evidence_path_ : ndarray
        The log evidence before each step.
    optimality_gap_ : float or ndarray of shape (n_outputs,)
        The certificate: nats that the best single change of the model would still bring.
    converged_ : bool
        Whether the search reached `tol` (for all outputs).
    n_iter_ : int
        Number of steps (the largest over outputs).
    n_jittered_ : int
        Number of steps in which a matrix needed jitter to be factorised.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import RVMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-10, 10, size=(100, 1))
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(100)
    >>> model = RVMRegressor(gamma=0.1).fit(X, y)
    >>> len(model.relevance_vectors_) < 10
    True
    >>> mean, std = model.predict([[0.0]], return_std=True)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KERNEL_CONSTRAINTS,
        "solver": [StrOptions({"sequential", "fixed-point", "em"})],
        "fit_intercept": ["boolean"],
        "intercept_prior": [StrOptions({"flat", "ard"})],
        "far_variance": [StrOptions({"none", "augment"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        solver: str = "sequential",
        candidates: Any = None,
        fit_intercept: bool = True,
        intercept_prior: str = "flat",
        far_variance: str = "none",
        max_iter: int = 10_000,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.candidates = candidates
        self.fit_intercept = fit_intercept
        self.intercept_prior = intercept_prior
        self.far_variance = far_variance
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @whole_fit
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RVMRegressor":
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            For a precomputed kernel of shape (n_samples, n_candidates).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Several outputs are fitted independently.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: an integer weight is the same as repeated rows.
        """
        X, y, weight, counts = self._validated(X, y, sample_weight)
        flat = self.fit_intercept and self.intercept_prior == "flat"
        ones, low_rank = self.fit_intercept and not flat, self.solver == "sequential"
        book = dictionary(self, X, weight, counts, ones=ones, low_rank=low_rank)
        if self.far_variance == "augment" and book.kernel is None:
            raise ValueError("far_variance='augment' needs a kernel that can be evaluated, not kernel='precomputed'")
        targets = [self._target(output, weight, flat) for output in y.reshape(len(y), -1).T]
        starts: list[Solution | None] = [None] * len(targets)
        gamma = first_gamma(self.gamma, X, weight) if has_gamma(self) else None
        with threads_for(book.rows.n_rows * book.rows.n_columns):
            if gamma is not None and self.gamma == "evidence":
                gamma, best = self._width(book, targets)
                book = book.at(kernel_of(self, gamma))
                if self.solver == "sequential":
                    found = iter(best.model)
                    starts = [None if target.constant else next(found) for target in targets]
            book = replace(book, rows=book.rows.standardised(weight, centre=flat))
            fits = [self._fit_output(book, target, start) for target, start in zip(targets, starts, strict=True)]
        self._store(fits, gamma, single=y.ndim == 1)
        self._warn(fits)
        return self

    def _target(self, y: FloatArray, weight: FloatArray, flat: bool) -> Target:
        """An output in the solver's standard units: variance one, and mean zero where the intercept is flat."""
        total = float(weight.sum())
        centre = float(weight @ y) / total if self.fit_intercept else 0.0
        unit = float(np.sqrt(weight @ (y - centre) ** 2 / total))
        constant = unit <= 8 * np.finfo(np.float64).eps * np.abs(y).max()
        t = np.sqrt(weight) * (y - centre if flat else y) / (1.0 if constant else unit)
        return Target(t, weight, centre, unit, flat, bool(constant))

    def _settings(self) -> Settings:
        return Settings(self.tol, self.max_iter, progress(self.verbose))

    def _width(self, book: Dictionary, targets: list[Target]) -> tuple[float, Fit[list[Solution]]]:
        """γ of largest evidence over all outputs with any spread, and their models there."""
        weight, flat = targets[0].weight, targets[0].flat
        targets = [target for target in targets if not target.constant]

        def fit_at(book: Dictionary, near: Fit[list[Solution]] | None) -> Fit[list[Solution]]:
            rows = book.rows.standardised(weight, centre=flat)
            problems = [target.problem(rows) for target in targets]
            start = None
            if near is not None and len(targets) == 1:
                alpha = np.exp(near.scales[:-1]) / rows.scale[near.active] ** 2
                start = Solution(near.active, alpha, float(np.exp(near.scales[-1])))
            results = [maximum(problem, "sequential", self._settings(), start) for problem in problems]
            objective = sum(problem.priced(result) for problem, result in zip(problems, results, strict=True))
            found = [result.solution for result in results]
            active = np.concatenate([np.empty(0, dtype=np.intp), *(model.active for model in found)])
            scales = [np.append(model.alpha * rows.scale[model.active] ** 2, model.noise) for model in found]
            return Fit(float(objective), active, np.log(np.concatenate([np.empty(0), *scales])), found)

        evidence = None
        if len(targets) == 1 and not book.ones:
            evidence = gaussian_evidence(targets[0].problem(book.rows.standardised(weight, centre=flat)))
        return gamma_of_evidence(self, book, weight, fit_at, evidence)

    def _fit_output(self, book: Dictionary, target: Target, start: Solution | None) -> KernelFit:
        """Fit one output, and bring what was found back to the data's units."""
        n_columns, unit = len(book.indices), target.unit
        if target.constant:
            empty = constant_fit(target.centre, self.fit_intercept, n_columns, 0.0)
            return book.kernel_fit(empty, np.arange(book.rows.n_columns))
        problem = target.problem(book.rows)
        found = solve(problem, self.solver, self._settings(), book.own, book.raw_rows, start)
        units = Units(target.centre, unit, found.problem.rows.scale / unit)
        fit, excess, far = units.fit(found.problem, found.result, n_columns), found.excess * unit**2, None
        if self.far_variance == "augment":
            far = FarVariance(book.X, target.weight, max(unit**2 - fit.noise_variance - excess, 0.0))
        freedom = pooled_freedom(fit.noise_variance, fit.freedom, excess, problem.n)
        return book.kernel_fit(fit, found.columns, excess=excess, far=far, freedom=freedom)

    def _store(self, fits: list[KernelFit], gamma: float | None, *, single: bool) -> None:
        """Fitted attributes: plain for 1-D y; one entry per output (a list where shapes differ) for 2-D y."""
        self._fits, self._single = fits, single
        self.relevance_vectors_ = self._arrays([fit.vectors for fit in fits])
        self.relevance_indices_ = self._arrays([fit.indices for fit in fits])
        self.dual_coef_ = self._arrays([fit.coef for fit in fits])
        self.precision_ = self._arrays([fit.precision[: len(fit.active)] for fit in fits])
        self.covariance_ = self._arrays([fit.covariance for fit in fits])
        self.relevance_ = self._arrays([fit.gamma[: len(fit.active)] for fit in fits])
        self.evidence_path_ = self._arrays([fit.path for fit in fits])
        self.intercept_ = self._numbers("intercept")
        self.noise_variance_ = self._numbers("noise_variance")
        self.excess_variance_ = self._numbers("excess")
        self.log_evidence_ = self._numbers("log_evidence")
        self.optimality_gap_ = self._numbers("gap")
        self.gamma_ = gamma
        self.converged_ = all(fit.converged for fit in fits)
        self.n_iter_ = max(len(fit.path) for fit in fits)
        self.n_jittered_ = sum(fit.n_jittered for fit in fits)

    def _warn(self, fits: list[KernelFit]) -> None:
        if not self.converged_:
            worst = max(fit.gap for fit in fits)
            warn_not_converged(worst, self.tol, self.max_iter, ConvergenceWarning)
        if any(fit.noise_at_floor for fit in fits):
            warnings.warn(
                f"the noise variance reached its floor ({NOISE_FLOOR:g} of the variance of y): the model reproduces y "
                "exactly. If y is not noise-free, choose a wider kernel (a smaller gamma) or fewer candidates.",
                RuntimeWarning,
                stacklevel=2,
            )

    def sample_posterior(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draws from the posterior of the kept weights.

        Returns
        -------
        dual_coef : ndarray of shape (n_samples, n_vectors)
        intercept : ndarray of shape (n_samples,)
            For 2-D y both are lists with one array per output.
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        draws = [fit.kept_samples(n_samples, rng) for fit in self._fits]
        return draws[0] if self._single else ([coef for coef, _ in draws], [level for _, level in draws])
