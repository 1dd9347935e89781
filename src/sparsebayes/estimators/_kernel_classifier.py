"""What classifiers on kernel columns share: how fits are stored, one per class."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sparsebayes.estimators._classifier import GaussianClassifier
from sparsebayes.estimators._kernel import KernelFit, KernelMixin


class KernelClassifier(KernelMixin, GaussianClassifier):
    """A classifier whose columns are kernel functions of training rows, one binary fit per class."""

    def _store(self, fits: list[KernelFit]) -> None:
        """Fitted attributes; lists (for two classes the one array) of what belongs to vectors."""

        def each(values: list[Any]) -> Any:
            return values[0] if len(fits) == 1 else values

        self.relevance_vectors_ = each([fit.vectors for fit in fits])
        self.relevance_indices_ = each([fit.indices for fit in fits])
        self.dual_coef_ = each([fit.coef for fit in fits])
        self.precision_ = each([fit.precision[: len(fit.active)] for fit in fits])
        self.relevance_ = each([fit.gamma[: len(fit.active)] for fit in fits])
        self.intercept_ = np.array([fit.intercept for fit in fits])
        self.evidence_path_ = each([fit.path for fit in fits])
        self.log_evidence_ = fits[0].log_evidence if len(fits) == 1 else np.array([fit.log_evidence for fit in fits])
        self.optimality_gap_ = max(fit.gap for fit in fits)
        self.converged_ = all(fit.converged for fit in fits)
        self.n_iter_ = max(1, *(len(fit.path) for fit in fits))
        self.n_jittered_ = sum(fit.n_jittered for fit in fits)
        self._fits, self._joint = fits, None

    def sample_posterior(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draws of the kept weights (n_samples, n_vectors) and the intercept (n_samples,).

        With more than two classes lists of both, with one array per class.
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        draws = [fit.kept_samples(n_samples, rng) for fit in self._fits]
        return draws[0] if len(draws) == 1 else ([coef for coef, _ in draws], [level for _, level in draws])
