"""Averaging over models against the single model and nine other methods: error, coverage, claims and time.

    OPENBLAS_NUM_THREADS=1 python benchmarks/averaging.py [--only designs] [--seeds 6] [--out FILE] [--table]

Four groups of data. designs: the regressions of designs.py. readme: those of the README. noise: nothing to find. trio:
one of three correlated features is true. Each fit is one line of the output file. A run continues where the file ends;
more seeds or methods extend it. At the end, or with --table at once, the file is printed as tables; with --figures the
errors by design and the calibration of the inclusion probabilities are drawn in docs/figures too.
"""

import argparse
from pathlib import Path

import numpy as np
from averaging_figures import publish
from averaging_tables import EDGES, report
from contenders import REGRESSORS, available
from designs import DESIGNS, NOISE, TRIOS, Draw
from peers import oracle
from problems import Linear, rmse
from records import add_options, chosen, claims, extend, jobs, read, seeds, timed, warm_up


class Readme:
    """A design of the README under its name there."""

    def __init__(self, linear):
        self.linear, self.name, self.n_features = linear, str(linear), linear.n_features

    def draw(self, seed):
        """The best error is that of least squares on the true features."""
        X, y, X_test, y_test, true = self.linear.draw(seed)
        return Draw(X, y, X_test, y_test, true, None, rmse(y_test, oracle(X, y, true)[1](X_test)))


README = [
    Readme(Linear(1_000, 200)),
    Readme(Linear(1_000, 200, rho=0.8)),
    Readme(Linear(1_000, 200, rho=0.95)),
    Readme(Linear(200, 2_000)),
    Readme(Linear(500, 10_000)),
]
GROUPS = {"designs": DESIGNS, "readme": README, "noise": NOISE, "trio": TRIOS}
LARGEST = {"scikit-learn ARD": 2_000, "MCP, CV": 2_000, "SCAD, CV": 2_000}
"""Columns beyond which a rival takes minutes a fit and is left out."""


def covered(truth, interval):
    """Whether each value lies in its interval."""
    low, high = interval.T
    return (low <= truth) & (truth <= high)


def bins(probability, true):
    """For each bin of inclusion probability: features, sum of the probabilities, true features."""
    which = np.clip(np.digitize(probability, EDGES) - 1, 0, len(EDGES) - 2)
    hit = np.isin(np.arange(len(probability)), true)
    sums = [np.bincount(which, weights, len(EDGES) - 1) for weights in (None, probability, hit)]
    return np.column_stack(sums).tolist()


def about_weights(answer, data):
    """Coverage of the intervals of all weights and of the true ones."""
    if answer.weight_interval is None or data.weights is None:
        return {}
    inside = covered(data.weights, answer.weight_interval())
    return {"cover_weights": inside.mean(), "cover_true": inside[data.true].mean() if len(data.true) else None}


def about_sets(answer, data):
    """For each credible set: size, stated probability, purity, and whether it holds a true feature."""
    if answer.sets is None or data.true is None:
        return {}
    sets = [
        (
            len(found.features),
            float(found.probability),
            float(found.purity),
            bool(np.isin(found.features, data.true).any()),
        )
        for found in answer.sets
    ]
    return {"sets": sets}


def judged(fit, data):
    """One record."""
    answer, seconds = timed(fit, data.X, data.y)
    record = {"rmse": rmse(data.y_test, answer.predict(data.X_test)), "noise": data.noise, "seconds": seconds}
    record |= claims(answer, data.true) | about_weights(answer, data) | about_sets(answer, data)
    record["n_true"] = None if data.true is None else len(data.true)
    if answer.interval is not None:
        record["cover"] = covered(data.y_test, answer.interval(data.X_test)).mean()
    if answer.probability is not None and data.true is not None:
        record["bins"] = bins(answer.probability, data.true)
    return record


def all_jobs(groups, numbers, methods, wanted):
    """Every fit that is asked for, data set by data set."""
    for group in groups:
        for design in chosen(GROUPS[group], wanted):
            fits = {name: fit for name, fit in methods.items() if design.n_features <= LARGEST.get(name, np.inf)}
            yield from jobs(group, [design], numbers, fits, judged)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=GROUPS, nargs="+", default=list(GROUPS), help="groups of data")
    parser.add_argument("--designs", nargs="+", help="names of designs; all by default")
    parser.add_argument("--methods", nargs="+", help=f"all by default: {', '.join(REGRESSORS)}")
    parser.add_argument("--figures", action="store_true", help="draw the figures of docs/ from the file")
    add_options(parser, Path(__file__).parent / "results" / "averaging.jsonl")
    given = parser.parse_args()
    if not given.table:
        methods = available(REGRESSORS, given.methods)
        warm_up(methods)
        extend(given.out, all_jobs(given.only, seeds(given), methods, given.designs))
    records = read(given.out)
    print(report(records))
    if given.figures:
        publish(records)


if __name__ == "__main__":
    main()
