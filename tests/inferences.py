"""Pairs of prior and inference that classifiers know."""

import pytest

from sparsebayes.engine.recipes import CLASSIFICATION

INFERENCES = {prior: [name for kind, name in CLASSIFICATION if kind == prior] for prior in ("ard", "ridge", "laplace")}
PAIRS = [(prior, inference) for prior, names in INFERENCES.items() for inference in names]
every_pair = pytest.mark.parametrize(("prior", "inference"), PAIRS, ids=[f"{prior} by {name}" for prior, name in PAIRS])
ard_inference = pytest.mark.parametrize("inference", INFERENCES["ard"])
