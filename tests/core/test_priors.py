"""Every prior: its candidate is the best precision by brute force, its terms are derivatives, its moves are kept."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sparsebayes.core.priors import ARD, Laplace, NonNegative, VariationalGamma, best_moves
from sparsebayes.core.scales import em, mackay

N = 14
NOISE = 0.3
PRIORS = {
    "ARD": ARD(),
    "ARD, Gamma": ARD(0.4, np.array([0.1, 0.2, 0.3, 0.1, 5.0])),
    "ARD, bounded": ARD(min_alpha=1.5),
    "Laplace": Laplace(rate=0.7).at_noise(NOISE),
    "VariationalGamma": VariationalGamma(0.4, 0.2),
    "VariationalGamma, shared": VariationalGamma(0.4, 0.2, shared=True),
    "NonNegative": NonNegative(),
    "NonNegative, smooth": NonNegative.smooth(3.0),
}
GRID = np.logspace(-6, 8, 28_001)


@pytest.fixture(params=PRIORS)
def prior(request):
    return PRIORS[request.param]


@pytest.fixture
def factors(rng):
    """s and q of columns that the data want, do not want, and want to be negative."""
    s = 10 ** rng.uniform(-2, 2, 5)
    return s, np.sqrt(s) * np.array([4.0, 2.5, -3.0, 0.8, 12.0])


def test_the_candidate_is_the_best_precision_by_brute_force(prior, factors):
    """Of gain and hyper-prior together, on a grid from min_alpha on; ∞ brings and costs nothing."""
    s, q = factors
    alpha, n_inside = prior.candidate(s, q), 0
    for j in range(5):
        own = prior.of(np.array([j]))
        grid = np.maximum(GRID, own.min_alpha)
        at = np.full(len(grid), s[j]), np.full(len(grid), q[j])
        values = own.gain(grid, *at) + own.log_density(grid)
        best = values.max() if not own.is_scale_free else max(values.max(), 0.0)
        one = alpha[j : j + 1]
        found = own.gain(one, s[j : j + 1], q[j : j + 1])[0]
        if np.isfinite(one[0]):
            n_inside += 1
            found += own.log_density(one)[0]
        # The grid has 2000 points a decade: (ln 10/2000)²/8 of a curvature of at most q²/s = 144.
        assert best - 1e-12 <= found <= best + 3e-5
        assert one[0] >= own.min_alpha
    assert n_inside >= 2


def test_gain_is_the_evidence_of_one_weight_by_quadrature(prior, factors):
    """∫ exp(q w - ½ s w²) N(w; 0, 1/α) dw, and the Laplace prior's density of g = 1/(ασ²) where there is one."""
    s, q = factors
    for j, alpha in ((0, 0.5), (1, 3.0), (3, 20.0)):
        width = 1 / np.sqrt(alpha + s[j])
        centre = q[j] * width**2
        peak = 0.5 * q[j] * centre
        area = quad(
            lambda w, j=j, alpha=alpha, peak=peak: (
                np.exp(q[j] * w - 0.5 * s[j] * w**2 - peak) * norm.pdf(w, 0, alpha**-0.5)
            ),
            centre - 12 * width,
            centre + 12 * width,
            epsabs=0,
        )[0]
        expected = np.log(area) + peak
        if isinstance(prior, Laplace):
            expected -= 0.5 * prior.rate / (alpha * NOISE)
        assert prior.gain(np.array([alpha]), s[[j]], q[[j]])[0] == pytest.approx(expected, rel=1e-8)
    assert prior.gain(np.array([np.inf]), s[:1], q[:1])[0] == 0


@pytest.mark.parametrize("name", [name for name, prior in PRIORS.items() if not isinstance(prior, VariationalGamma)])
def test_newton_terms_are_derivatives_of_what_the_prior_adds(name):
    """Slope and negative curvature in log α of scale_term less ½ log|A|, weight by weight.

    Where precisions are integrated out α stands for the mean of q(α), and the batch loop is the only one.
    """
    prior = PRIORS[name]
    alpha, h = np.array([0.3, 1.0, 2.0, 7.0, 40.0]), 1e-3

    def added(log_alpha):
        return prior.scale_term(np.exp(log_alpha)) - 0.5 * log_alpha.sum()

    slope, curvature = prior.newton_terms(alpha)
    at = np.log(alpha)
    for j, step in enumerate(h * np.eye(5)):
        up, here, down = added(at + step), added(at), added(at - step)
        # An error of h²/6 of a third derivative of the size of the curvature, and of 1e-13/h² by rounding.
        assert slope[j] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-9)
        assert curvature[j] == pytest.approx(-(up - 2 * here + down) / h**2, rel=1e-5, abs=1e-5)


def test_a_prior_of_some_columns_has_their_rates(prior, factors):
    s, q = factors
    which = np.array([4, 1])
    np.testing.assert_array_equal(prior.of(which).candidate(s[which], q[which]), prior.candidate(s, q)[which])
    mask = np.array([False, True, False, False, True])
    np.testing.assert_array_equal(prior.of(mask).candidate(s[mask], q[mask]), prior.candidate(s, q)[mask])


@pytest.mark.parametrize("rule", [em, mackay])
def test_reestimation_is_the_rule_with_the_hyper_prior(rule, prior, rng):
    mean, var, gamma = rng.standard_normal(5), rng.random(5), rng.random(5)
    np.testing.assert_array_equal(prior.reestimate(rule, mean, var, gamma), rule(mean, var, gamma, prior.a, prior.b))


def test_only_a_laplace_prior_depends_on_the_noise(prior, factors):
    moved = prior.at_noise(5 * NOISE)
    assert (moved is prior) == (not isinstance(prior, Laplace))
    if isinstance(prior, Laplace):
        assert moved.strength == pytest.approx(prior.strength / 5)
        assert moved.candidate(*factors)[0] < prior.candidate(*factors)[0]


def test_the_variational_term_is_largest_at_the_em_rule(rng):
    """At given moments of the weights the bound, as a function of the mean of q(α), is largest where EM puts it."""
    second = rng.uniform(0.1, 3, 4)  # μ² + Σ_jj
    for prior in (VariationalGamma(0.4, 0.2), VariationalGamma(0.4, 0.2, shared=True)):
        count = 4 if prior.shared else 1
        best = (2 * prior.a + count) / (2 * prior.b + (second.sum() if prior.shared else second[0]))

        def bound(alpha, prior=prior):
            weights = second if prior.shared else second[:1]
            return prior.scale_term(np.full(len(weights), alpha)) - 0.5 * alpha * weights.sum()

        assert all(bound(best) > bound(best * factor) for factor in (0.9, 0.99, 1.01, 1.1))


def test_weights_that_would_be_negative_are_out(factors):
    s, q = factors
    for prior in (NonNegative(), NonNegative.smooth(3.0)):
        assert np.isinf(prior.candidate(s, -np.abs(q))).all()
        np.testing.assert_array_equal(prior.candidate(s, np.abs(q)), ARD().candidate(s, q))
        assert (prior.outside(s, -100 * np.abs(q))[1] == 0).all()


def test_the_smooth_truncation_is_twice_a_sigmoid_and_its_sites_are_its_expansion():
    c, prior, w = 3.0, NonNegative.smooth(3.0), np.array([-0.4, 0.0, 0.2, 1.5])
    factor = np.log(2 / (1 + np.exp(-c * w)))
    assert prior.log_factor(w) == pytest.approx(factor.sum())
    sites = prior.weight_sites(w)
    np.testing.assert_allclose(-0.5 * sites.precision * w**2 + sites.shift * w + sites.const, factor, atol=1e-12)
    h = 1e-4

    def log_factor(x):
        return np.log(2 / (1 + np.exp(-c * x)))

    first = (log_factor(w + h) - log_factor(w - h)) / (2 * h)
    second = (log_factor(w + h) - 2 * log_factor(w) + log_factor(w - h)) / h**2
    np.testing.assert_allclose(sites.shift - sites.precision * w, first, atol=1e-7)
    np.testing.assert_allclose(sites.precision, -second, atol=1e-6)
    s, q = prior.outside(np.array([2.0]), np.array([1.0]))
    assert (s[0], q[0]) == (pytest.approx(2 + c**2 / 4), pytest.approx(1 + c / 2))
    # Twice a sigmoid keeps a symmetric density normalised, at any steepness.
    total = quad(lambda x: norm.pdf(x, 0, 0.7) * np.exp(prior.log_factor(np.array([x]))), -6, 6, points=[0])[0]
    assert total == pytest.approx(1.0, rel=1e-9)


def test_the_exact_truncation_doubles_the_share_above_zero():
    prior, mean, var = NonNegative(), np.array([0.3, -0.5]), np.array([0.4, 0.2])
    expected = np.log(2 * norm.sf(0, mean, np.sqrt(var))).sum()
    assert prior.log_mass(mean, var) == pytest.approx(expected)
    assert prior.weight_sites(mean) is None
    assert NonNegative.smooth(3.0).log_mass(mean, var) == 0


# --- moves ---


@pytest.fixture
def design(rng):
    return rng.standard_normal((N, 5))


@pytest.fixture
def t(design, rng):
    return design @ np.array([2.0, -1.0, 0.4, 0.0, 0.0]) + 0.6 * rng.standard_normal(N)


@pytest.fixture
def all_factors(design, t):
    """s and q by their definition: the covariance without the column itself."""

    def of(alpha):
        s, q = np.empty(5), np.empty(5)
        for j in range(5):
            C = NOISE * np.eye(N) + (design / np.where(np.arange(5) == j, np.inf, alpha)) @ design.T
            s[j], q[j] = design[:, j] @ np.linalg.solve(C, np.column_stack([design[:, j], t]))
        return s, q

    return of


@pytest.mark.parametrize("prior", [PRIORS["ARD"], PRIORS["Laplace"]], ids=["ARD", "Laplace"])
@pytest.mark.parametrize("price", [0.0, 0.8, 30.0, "per column"])
@pytest.mark.parametrize("inside", [(), (0, 3), (0, 1, 2, 3, 4)])
def test_promised_gains_are_real_differences_of_priced_evidence(prior, price, inside, design, t, all_factors, marginal):
    nats = np.array([0.1, 3.0, 0.5, 0.2, 1.0]) if price == "per column" else np.full(5, price)
    alpha = np.full(5, np.inf)
    alpha[list(inside)] = np.array([0.9, 2.0, 0.1, 5.0, 40.0])[: len(inside)]
    strength = getattr(prior, "strength", 0.0)

    def priced(alpha):
        own = 0.5 * strength * (1 / alpha).sum()
        return marginal(design, t, alpha, NOISE) - own - nats[np.isfinite(alpha)].sum()

    moves = best_moves(prior, *all_factors(alpha), alpha, nats)
    for j in range(5):
        moved = alpha.copy()
        moved[j] = moves.alpha[j]
        assert moves.gain[j] == pytest.approx(priced(moved) - priced(alpha), rel=1e-9, abs=1e-11)
        for other in np.logspace(-4, 6, 21):
            moved[j] = other
            assert priced(moved) - priced(alpha) <= moves.gain[j] + 1e-11
    assert (moves.gain >= -1e-12).all()


def test_moves_of_all_three_kinds_occur_in_the_test_above(all_factors):
    alpha, price = np.array([0.9, 2.0, 0.1, np.inf, 40.0]), np.full(5, 0.8)
    to = best_moves(ARD(), *all_factors(alpha), alpha, price).alpha
    assert np.isfinite(to[:2]).all()
    assert np.isinf(to[[3, 4]]).all()
    empty = np.full(5, np.inf)
    assert np.isfinite(best_moves(ARD(), *all_factors(empty), empty, price).alpha).any()


def test_with_a_hyper_prior_worth_is_evidence_at_the_mode(design, t, all_factors, marginal):
    """A column enters or leaves by the evidence it brings (less the price); inside, the hyper-prior counts too."""
    price, a, b = 2.0, 0.4, np.array([0.1, 0.2, 0.3, 0.1, 5.0])
    prior = ARD(a, b)
    alpha = np.array([0.9, np.inf, 6.0, 40.0, np.inf])
    s, q = all_factors(alpha)
    moves, modes = best_moves(prior, s, q, alpha, np.full(5, price)), prior.candidate(s, q)
    here = marginal(design, t, alpha, NOISE)
    kinds = set()
    for j in range(5):
        moved, out = alpha.copy(), alpha.copy()
        moved[j], out[j] = modes[j], np.inf
        at_mode, without = marginal(design, t, moved, NOISE), marginal(design, t, out, NOISE)
        pays = at_mode - without > price
        kinds.add((bool(pays), bool(np.isfinite(alpha[j]))))
        assert moves.alpha[j] == (modes[j] if pays else np.inf)
        assert moves.worth[j] == pytest.approx(at_mode - without, rel=1e-9)
        if np.isinf(alpha[j]):
            expected = max(at_mode - here - price, 0.0)
        elif pays:
            hyper = a * np.log(modes[j] / alpha[j]) - b[j] * (modes[j] - alpha[j])
            expected = at_mode - here + hyper
        else:  # by what it brings now or at its mode, whichever is less: it goes in either case
            expected = price - min(here, at_mode) + without
        assert moves.gain[j] == pytest.approx(expected, rel=1e-9, abs=1e-11)
    assert kinds == {(True, True), (False, True), (True, False), (False, False)}


def test_the_rules_for_the_compiled_search_are_those_of_the_prior(prior):
    rules = prior.rules
    assert rules.min_alpha == prior.min_alpha
    if isinstance(prior, NonNegative):
        assert rules.positive
    else:
        assert not rules.positive
        assert (rules.a, rules.rate) == (prior.a, getattr(prior, "rate", 0.0))
        np.testing.assert_array_equal(rules.b, prior.b)
    assert replace(prior, a=0.0, b=0.0).is_scale_free
