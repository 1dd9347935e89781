"""Averaging over models, side by side with other programs for it: time, error and claims.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/averaging_speed.py [--seeds 3] [--out FILE] [--table]

millipede (weighted tempered Gibbs sampling in torch) and pysusie (a sum of single effects, variational) with their
defaults on standardised data; both claim features with an inclusion probability of 0.9 or more, as we do. The data are
those of the README: ten true features, noise with standard deviation 1. Methods take turns on each data set.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from averaging import Readme, judged
from contenders import AVERAGED, REGRESSORS, SINGLE, Answer, Units, available
from problems import Linear
from records import add_options, by, extend, jobs, mean, read, seeds, table, warm_up

SIZES = [(100, 200), (1_000, 200), (200, 2_000), (500, 10_000)]
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


METHODS = {
    AVERAGED: REGRESSORS[AVERAGED],
    SINGLE: REGRESSORS[SINGLE],
    "millipede": millipede,
    "pysusie": susie,
}


def report(records):
    rows = []
    for design, fits in by(records, "design").items():
        methods = by(fits, "method")
        ours = mean(methods[AVERAGED], "seconds") if AVERAGED in methods else np.nan
        for name, runs in methods.items():
            seconds, ratio = mean(runs, "seconds"), mean(runs, "rmse") / mean(runs, "noise")
            times = "" if np.isnan(ours) else f"{seconds / ours:.1f}"
            claimed = f"{mean(runs, 'kept'):.1f} / {mean(runs, 'hits'):.1f}"
            rows.append([design, name, len(runs), f"{seconds:.3f}", times, f"{100 * (ratio - 1):+.1f}", claimed])
    return table(["data", "method", "sets", "seconds", "× averaged", "RMSE over oracle's, %", "kept / true"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, Path(__file__).parent / "results" / "averaging_speed.jsonl")
    given = parser.parse_args()
    if not given.table:
        methods = available(METHODS)
        warm_up(methods)
        designs = [Readme(Linear(*size)) for size in SIZES]
        extend(given.out, jobs("speed", designs, seeds(given), methods, judged))
    print(report(read(given.out)))


if __name__ == "__main__":
    main()
