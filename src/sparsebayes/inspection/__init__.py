"""Figures of fitted models as in scikit-learn: `from_…` computes, `plot` draws.

Every display also lists its numbers (`to_table`) and describes itself in a sentence (`text`). matplotlib is imported
by the first `plot`: `pip install 'sparsebayes[plot]'`. `to_datatree` hands draws from the posterior to ArviZ.
"""

from sparsebayes.inspection.coverage import CoverageDisplay
from sparsebayes.inspection.evidence import EvidencePathDisplay
from sparsebayes.inspection.inclusion import InclusionDisplay
from sparsebayes.inspection.posterior import to_datatree
from sparsebayes.inspection.predictions import PredictiveBandDisplay
from sparsebayes.inspection.regions import DecisionRegionsDisplay
from sparsebayes.inspection.relevance import RelevanceDisplay
from sparsebayes.inspection.spectrum import RelevanceSpectrumDisplay
from sparsebayes.inspection.stability import StabilityDisplay

__all__ = [
    "CoverageDisplay",
    "DecisionRegionsDisplay",
    "EvidencePathDisplay",
    "InclusionDisplay",
    "PredictiveBandDisplay",
    "RelevanceDisplay",
    "RelevanceSpectrumDisplay",
    "StabilityDisplay",
    "to_datatree",
]
