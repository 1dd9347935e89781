"""A fixed small part of the campaign against the estimators; `estimators.py` runs more of it."""

import pytest
from fuzz.cases import cases, outcome
from hypothesis import HealthCheck, Phase, given, settings

QUIETLY = settings(
    max_examples=300,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.filterwarnings("ignore")
@QUIETLY
@given(cases())
def test_any_fit_is_refused_or_sound(case):
    assert outcome(case) in ("fitted", "refused")
