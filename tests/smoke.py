"""A linear and a kernel model with an installed package; no test tools needed.

    python smoke.py [--compiled | --pure]

Run it outside of the source tree. With `--compiled` or `--pure` the compiled module must be there, or must not.
"""

import sys

import numpy as np

from sparsebayes import ARDRegressor, RVMClassifier, __version__
from sparsebayes.engine.compiled import COMPILED


def main(arguments: list[str]) -> None:
    """Fit a linear and a kernel model, and check what they found."""
    if arguments:
        assert (arguments[0] == "--compiled") == COMPILED, f"compiled: {COMPILED}"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20))
    y = 3 * X[:, 4] - 2 * X[:, 11] + 0.1 * rng.normal(size=200)
    model = ARDRegressor().fit(X, y)
    assert model.get_feature_names_out().tolist() == ["x4", "x11"], model.get_feature_names_out()
    labels = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 > 1.4, "out", "in")
    accuracy = RVMClassifier().fit(X[:, :2], labels).score(X[:, :2], labels)
    assert accuracy > 0.9, accuracy
    print(f"sparsebayes {__version__}: {'compiled' if COMPILED else 'NumPy'} engine, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
