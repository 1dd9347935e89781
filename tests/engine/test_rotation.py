"""Which columns the sweeps of a chain may change; test_logistic_chains.py has the posterior of such chains."""

from itertools import islice

import numpy as np
from numpy.testing import assert_array_equal

from sparsebayes.engine import rotation
from sparsebayes.engine.rotation import Part, favourites, turns


def test_every_column_has_its_turn(monkeypatch):
    monkeypatch.setattr(rotation, "WHOLE", 10)
    score = np.arange(60.0)
    always = favourites(score, score < 59)
    assert_array_equal(np.sort(always), [56, 57, 58])  # one in twenty; 59 may not move
    cycle = np.array(list(islice(turns(always, 60, np.random.default_rng(0)), 1 + rotation.TURNS)))
    assert cycle[0].all()
    assert cycle[1:, always].all()
    assert_array_equal(np.delete(cycle[1:], always, axis=1).sum(axis=0), 1)


def test_small_problems_have_all_columns_in_every_sweep():
    assert favourites(np.ones(30), np.ones(30, dtype=bool)).size == 0
    assert np.all(list(islice(turns(np.empty(0, dtype=np.intp), 30, np.random.default_rng(0)), 5)))


def test_columns_inside_stay_where_they_are_not_free():
    log_prior = np.array([0.0, 1.0, np.inf, -np.inf, 0.5, 0.0])
    part = Part.of(np.array([True, False, False, True, False, False]), np.array([1, 2, 4]), log_prior)
    assert_array_equal(part.columns, [0, 1, 2, 3, 4])
    assert_array_equal(part.log_prior, [0.0, np.inf, np.inf, -np.inf, np.inf])
    assert part.n_held == 2
    assert_array_equal(part.local(np.array([1, 2, 4])), [1, 2, 4])
