"""Averaging over models in two-class problems: error, log loss, calibration, claims and time.

    OPENBLAS_NUM_THREADS=1 python benchmarks/averaging_classes.py [--only simulated] [--seeds 6] [--out FILE] [--table]

simulated: the two-class designs of designs.py, each with 2,000 fresh rows. measured: gene sets, by stratified 10-fold
cross-validation, of which each repeat is a "seed" (--seeds 5 is 5 × 10 folds); --data is the folder with their files.
Log loss is in nats. The calibration error is the mean distance between predicted and observed share of class 1 over
ten bins of equally many rows, for the folds of a gene set together. The output file is extended as by averaging.py.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from contenders import CLASSIFIERS, available
from designs import CLASS_DESIGNS
from logistic import DATA, calibration_error
from records import add_options, by, chosen, claims, extend, jobs, mean, read, seeds, table, timed, warm_up
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

GENES = ("colon_alon", "leukemia_golub")
N_FOLDS = 10


@dataclass(frozen=True)
class GeneSet:
    """Measured data, cut into folds anew for each seed."""

    name: str
    X: np.ndarray
    y: np.ndarray

    def draw(self, seed):
        """Inputs, classes, and the rows to train and to test on in each fold."""
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
        return self.X, self.y, list(folds.split(self.X, self.y))


def gene_sets(folder):
    """Those in the folder, on a log scale where they are raw intensities; a note on each that is not."""
    for name in GENES:
        path = folder / f"{name}.csv.gz"
        if not path.exists():
            print(f"{name}: no {path.name} in {folder}, left out")
            continue
        *columns, y = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
        X = np.column_stack(columns)
        yield GeneSet(name, np.log(X) if X.min() > 0 else X, y.astype(int))


def scores(y, p):
    """Error, log loss and calibration error."""
    return {
        "error": float(((p > 0.5) != y).mean()),
        "log_loss": float(log_loss(y, p, labels=[0, 1])),
        "calibration": calibration_error(y, p),
    }


def judged(fit, data):
    """One record of a simulated data set."""
    answer, seconds = timed(fit, data.X, data.y)
    record = scores(data.y_test, answer.predict(data.X_test)) | {"bayes_error": data.noise, "seconds": seconds}
    return record | claims(answer, data.true)


def validated(fit, data):
    """One record of a gene set: means over folds, and the scores of all rows, each predicted by a fit without it."""
    X, y, folds = data
    p, seconds, kept = np.empty(len(y)), 0.0, []
    for train, test in folds:
        answer, taken = timed(fit, X[train], y[train])
        p[test], seconds = answer.predict(X[test]), seconds + taken / N_FOLDS
        kept.append(None if answer.kept is None else len(answer.kept))
    return scores(y, p) | {"seconds": seconds, "kept": None if None in kept else float(np.mean(kept)), "hits": None}


def report(records):
    """One row for each data set and method."""
    rows = []
    for (design, method), fits in by(records, "design", "method").items():
        spread = np.std([record["error"] for record in fits], ddof=1) / np.sqrt(len(fits)) if len(fits) > 1 else np.nan
        kept, hits = mean(fits, "kept"), mean(fits, "hits")
        claimed = "" if np.isnan(kept) else f"{kept:.1f}" + ("" if np.isnan(hits) else f" / {hits:.1f}")
        best = mean(fits, "bayes_error")
        rows.append(
            [
                design,
                method,
                len(fits),
                "" if np.isnan(best) else f"{100 * best:.1f}",
                f"{100 * mean(fits, 'error'):.1f}" + ("" if np.isnan(spread) else f" ± {100 * spread:.1f}"),
                f"{mean(fits, 'log_loss'):.3f}",
                f"{mean(fits, 'calibration'):.3f}",
                claimed,
                f"{mean(fits, 'seconds'):.3f}",
            ]
        )
    header = ["data", "method", "sets", "least error, %", "error, %", "log loss", "calibration error", "kept / true"]
    return table([*header, "seconds a fit"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["simulated", "measured"])
    parser.add_argument("--designs", nargs="+", help="names of designs or gene sets; all by default")
    parser.add_argument("--methods", nargs="+", help=f"all by default: {', '.join(CLASSIFIERS)}")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the gene sets")
    add_options(parser, Path(__file__).parent / "results" / "averaging_classes.jsonl")
    given = parser.parse_args()
    if not given.table:
        methods = available(CLASSIFIERS, given.methods)
        warm_up(methods)
        if given.only != "measured":
            designs = chosen(CLASS_DESIGNS, given.designs)
            extend(given.out, jobs("simulated", designs, seeds(given), methods, judged))
        if given.only != "simulated":
            designs = chosen(gene_sets(given.data), given.designs)
            extend(given.out, jobs("measured", designs, seeds(given), methods, validated))
    print(report(read(given.out)))


if __name__ == "__main__":
    main()
