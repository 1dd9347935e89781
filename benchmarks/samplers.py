"""Programs of others that average over models, as contenders.

millipede (weighted tempered Gibbs sampling in torch) and pysusie (a sum of single effects, variational) with their
defaults on standardised data; both claim features with an inclusion probability of 0.9 or more, as we do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from contenders import Answer, Units

CLAIM = 0.9


@dataclass
class Sampler:
    """A method (Z, t) → (inclusion probabilities, weights), both of standardised data, as a model."""

    run: Callable

    def fit(self, Z, t):
        self.probability, self.weights = self.run(Z, t)
        return self

    def predict(self, Z):
        return Z @ self.weights


def standardised(run):
    """Such a method as a contender."""

    def fit(X, y):
        units = Units(X, y)
        model = units.fit(Sampler(run), X, y)
        return Answer(units.back(model.predict), np.flatnonzero(model.probability >= CLAIM))

    return fit


@standardised
def millipede(Z, t):
    """2,000 samples after 1,000 to burn in; 5 features expected. A tenth of very many columns at a time, as advised."""
    import pandas as pd
    from millipede import NormalLikelihoodVariableSelector

    frame = pd.DataFrame(np.column_stack([Z, t])).rename(columns=str)
    part = Z.shape[1] // 10 if Z.shape[1] >= 10_000 else None
    chain = NormalLikelihoodVariableSelector(frame, frame.columns[-1], subset_size=part)
    chain.run(verbosity=None, seed=0)
    return chain.pip.to_numpy(), chain.beta.to_numpy()[: Z.shape[1]]


@standardised
def susie(Z, t):
    """At most ten effects."""
    import pysusie

    found = pysusie.susie(Z, t)
    return pysusie.susie_get_pip(found), pysusie.susie_get_posterior_mean(found)
