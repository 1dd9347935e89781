"""Programs of others that average over models, as contenders, and a table of them beside ours.

    OPENBLAS_NUM_THREADS=1 python benchmarks/samplers.py [--seeds 3]

millipede (weighted tempered Gibbs sampling in torch) and pysusie (a sum of single effects, variational) with their
defaults on standardised data; both claim features with an inclusion probability of 0.9 or more, as we do.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from contenders import AVERAGED, REGRESSORS, Answer, Units, available
from designs import DESIGNS
from problems import Linear, rmse
from records import table, timed, warm_up

CLAIM = 0.9
SIZES = [(100, 200, 0.0), (1_000, 200, 0.0), (1_000, 200, 0.95), (200, 2_000, 0.0), (500, 10_000, 0.0)]
"""Rows, features and correlation of neighbouring features of the README's designs."""
KINDS = ("blocks 0.9", "30 weak", "100 of 200", "SNPs in LD")
"""Designs whose features are correlated, weak or many."""


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


def problems():
    """Name and a function of the seed that draws training rows, test rows and the true features."""
    for n, d, rho in SIZES:
        linear = Linear(n, d, rho=rho)
        yield str(linear), linear.draw
    for design in DESIGNS:
        if design.name in KINDS:
            yield design.name, lambda seed, of=design: drawn(of.draw(seed))


def drawn(data):
    """A draw of designs.py in the form of problems.py."""
    return data.X, data.y, data.X_test, data.y_test, data.true


def measured(fit, X, y, X_test, y_test, true):
    """Seconds, test error, claims and true claims of one fit."""
    answer, seconds = timed(fit, X, y)
    return seconds, rmse(y_test, answer.predict(X_test)), len(answer.kept), len(np.intersect1d(answer.kept, true))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    methods = available({AVERAGED: REGRESSORS[AVERAGED], "pysusie": susie, "millipede": millipede})
    warm_up(methods)
    rows = []
    for name, draw in problems():
        ours = None
        for method, fit in methods.items():
            results = np.array([measured(fit, *draw(seed)) for seed in seeds])
            seconds = float(np.median(results[:, 0]))
            ours = seconds if ours is None else ours
            error, kept, hits = results[:, 1:].mean(axis=0)
            rows.append(
                [name, method, f"{seconds:.3f}", f"{seconds / ours:.1f}", f"{error:.4f}", f"{kept:.1f} / {hits:.1f}"]
            )
            print(*rows[-1], sep="  ", flush=True)
    print(table(["data", "method", "seconds", "× ours", "test RMSE", "claimed / true"], rows))


if __name__ == "__main__":
    main()
