"""Feature weights for two classes (PFCVM; docs/mathematics.md, section 5), found by a regression of the labels.

A probabilistic classification vector machine with weights inside its kernel has an evidence of its own, in Laplace's
approximation. It is a poor guide: every feature brings the classes nearer to being separable, rows saturate, and where
no curvature is left the approximation fails. The regression of the labels ±1 on the same kernel columns has an exact
evidence, and its target is the difference of the class probabilities. So the weights are found there (engine/theta.py),
and the machine is then fitted on that kernel.
"""

import numpy as np

from sparsebayes.core.types import FloatArray
from sparsebayes.engine.drvm import RegressionBlock
from sparsebayes.engine.loop import Settings

CERTAIN = 0.05
"""Part of the labels' variance that no regression is to explain: else a narrow kernel in a single feature reproduces
them, the noise vanishes, and a density without bound is called evidence. A probability of 0.99 leaves about as much."""


def label_block(t: FloatArray, weight: FloatArray, flat_intercept: bool, settings: Settings) -> RegressionBlock:
    """Classes t in {0, 1} as the target ±1 of a regression, in standard units."""
    sign = 2 * t - 1
    y = sign - flat_intercept * (weight @ sign) / weight.sum()
    spread = float(np.sqrt(weight @ y**2 / weight.sum()))
    return RegressionBlock(np.sqrt(weight) * y / spread, weight, flat_intercept, settings, CERTAIN)
