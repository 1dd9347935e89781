"""What the bound of half of the rows does: sparse regressions with and without it.

    OPENBLAS_NUM_THREADS=1 python benchmarks/half_the_rows.py [--seeds 4]

For the default width, "scale" and a width that is far too narrow (γ = 3 in standard deviations): mean error over the
standard deviation of the target, kept vectors over rows, the share of the fits that came to the bound, and
processor seconds, over the regressions of kernels.py and those of Tipping's table.
"""

import argparse
import time

import numpy as np
from kernels import REGRESSIONS, draw
from peers import quietly
from sets import friedman, gaussian_noise, sinc
from sklearn.datasets import make_friedman2, make_friedman3

from sparsebayes import RVMRegressor
from sparsebayes.core.prices import HalfTheRows

MADE = {
    "sinc": sinc(gaussian_noise),
    "Friedman #1": friedman(),
    "Friedman #2": friedman(make_friedman2, share=1 / 3),
    "Friedman #3": friedman(make_friedman3, share=1 / 3),
}
BOUND = HalfTheRows.base


def problems(seed):
    for name in REGRESSIONS:
        data = draw(name, 200, seed)
        if data is not None:
            yield name, data
    for name, made in MADE.items():
        yield name, made(seed)


def fitted(gamma, bounded, X, y, X_test, y_test):
    """Error, share of the rows, whether a larger model was asked for, seconds."""
    reached = []

    def base(price, k):
        charge = BOUND(price, k)
        reached.append(charge > 0)
        return charge if bounded else 0.0 if k < price.rows - 1 else np.inf

    HalfTheRows.base = base
    model, began = RVMRegressor(vectors="sparse", gamma=gamma), time.process_time()
    quietly(model.fit, X, y)
    seconds = time.process_time() - began
    error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / y.std()
    return error, len(model.relevance_indices_) / len(y), any(reached), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    args = parser.parse_args()
    for gamma in ("evidence", "scale", 3.0):
        rows = {True: [], False: []}
        for seed in range(args.seeds):
            for _, data in problems(seed):
                for bounded, found in rows.items():
                    found.append(fitted(gamma, bounded, *data))
        apart = np.abs(np.subtract(rows[True], rows[False])[:, 0])
        for bounded, found in rows.items():
            error, share, reached, seconds = np.mean(found, axis=0)
            print(
                f"gamma {gamma!s:9s} {'bound' if bounded else 'none ':5s}  error {error:.4f}  share {share:.2f} "
                f"(at most {np.max(found, axis=0)[1]:.2f})  at the bound {reached:.2f}  {seconds:.2f} s  "
                f"largest difference {apart.max():.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
