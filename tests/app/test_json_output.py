"""JSON for other programs: plain values only."""

import json

import numpy as np

from sparsebayes.app.facts import facts_of
from sparsebayes.app.json_output import study_json
from sparsebayes.app.load_data import Request, prepared
from sparsebayes.app.plain_values import plain
from sparsebayes.app.run_study import Settings, studied


def test_a_study_becomes_valid_json():
    found = studied(prepared(Request("sinc", cv=2)), "ard", Settings())
    value = study_json(facts_of(found))
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    assert value["scores"][0]["model"] == "ard"
    assert value["scores"][0]["difference_interval"] is None
    assert value["converged"] is True


def test_arrays_and_missing_numbers_become_plain_values():
    given = {"a": np.float64("nan"), "b": np.arange(2), "c": (np.bool_(True), "x"), 4: np.inf}
    assert plain(given) == {"a": None, "b": [0, 1], "c": [True, "x"], "4": None}
