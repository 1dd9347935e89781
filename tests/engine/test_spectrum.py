"""Both decompositions of a set of columns against dense matrices, on a grid of c."""

import numpy as np
import pytest
from enumeration import make_sets, moments
from numpy.testing import assert_allclose

from sparsebayes.engine.spectrum import OfColumns, OfRows

C = np.array([1e-3, 0.1, 3.0, 200.0])
ACTIVE = [0, 1, 4, 6]


@pytest.fixture
def sets():
    """Fewer rows than columns, so that both forms apply."""
    return make_sets(7, 12)


def of_columns(sets, active=ACTIVE):
    Phi = sets.problem.design.columns(slice(None))[:, active]
    return OfColumns.of(Phi.T @ Phi, sets.problem.projection[active], sets.energy)


def of_rows(sets, active=ACTIVE):
    Phi = sets.problem.design.columns(slice(None))[:, active]
    return OfRows.of(Phi, sets.problem.t, sets.problem.rest + sets.floor)


every_form = pytest.mark.parametrize("spectrum_of", [of_columns, of_rows])


@every_form
@pytest.mark.parametrize("active", [[], [3], ACTIVE, list(range(12))], ids=len)
def test_volume_and_rest(sets, spectrum_of, active):
    spectrum, exact = spectrum_of(sets, active), [moments(sets, active, c) for c in C]
    # The columns' form subtracts what is explained: it has lost log10(c n) digits of ρ where all is explained.
    rtol = 1e-8 if spectrum_of is of_columns else 1e-11
    assert_allclose(spectrum.log_volume(C), [each.log_volume for each in exact], rtol=1e-11, atol=1e-13)
    assert_allclose(spectrum.rest(C), [each.rest for each in exact], rtol=rtol)


@every_form
@pytest.mark.parametrize("c", C)
def test_small_matrix(sets, spectrum_of, c):
    Phi = sets.problem.design.columns(slice(None))[:, ACTIVE]
    if spectrum_of is of_columns:
        expected = np.linalg.inv(Phi.T @ Phi + np.eye(len(ACTIVE)) / c)
    else:
        expected = np.linalg.inv(np.eye(len(Phi)) + c * Phi @ Phi.T)
    assert_allclose(spectrum_of(sets).inner(c), expected, rtol=1e-10, atol=1e-12)


@every_form
@pytest.mark.parametrize("c", C)
def test_factors_of_all_columns(sets, spectrum_of, c):
    Phi, t = sets.problem.design.columns(slice(None)), sets.problem.t
    M = np.linalg.inv(np.eye(len(t)) + c * Phi[:, ACTIVE] @ Phi[:, ACTIVE].T)
    others = Phi if spectrum_of is of_rows else Phi[:, ACTIVE].T @ Phi
    s, q = spectrum_of(sets).factors(c, others, sets.problem.column_energy, sets.problem.projection)
    assert_allclose(s, np.einsum("ij,ik,kj->j", Phi, M, Phi), rtol=1e-10, atol=1e-10)
    assert_allclose(q, Phi.T @ M @ t, rtol=1e-10, atol=1e-10)


def test_what_rounding_has_left_of_a_column_counts_as_nothing():
    """A copy of a column inside at a huge c: the difference of s from zero has no correct digit."""
    sets = make_sets(20, 4)
    Phi = sets.problem.design.columns(slice(None))
    Phi = np.column_stack([Phi, Phi[:, 0]])
    gram, projection = Phi.T @ Phi, Phi.T @ sets.problem.t
    spectrum = OfColumns.of(gram[:1, :1], projection[:1], sets.energy)
    s, q = spectrum.factors(1e16, gram[:1], np.diag(gram), projection)
    assert s[0] == s[4] == q[0] == q[4] == 0.0
    assert (s[1:4] > 0).all()
