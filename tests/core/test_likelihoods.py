"""Every likelihood of the table: densities sum to one, derivatives are differences, bounds touch and lie below."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar
from scipy.special import digamma
from scipy.stats import bernoulli, gamma, norm, poisson
from scipy.stats import t as student

from sparsebayes.core.likelihoods import (
    LIKELIHOODS,
    Bernoulli,
    Gaussian,
    Poisson,
    StudentT,
    expansion,
    poisson_deviance,
    weighted,
)
from sparsebayes.core.scales import noise_em, noise_mackay
from sparsebayes.core.special import sigmoid

ETA = np.array([-8.0, -2.0, -0.7, 0.0, 1e-3, 0.9, 2.5])
CASES = {
    "gaussian": (Gaussian(0.3), np.array([-1.0, 0.0, 2.0, 0.4, 0.5, 3.0, -6.0])),
    "bernoulli": (Bernoulli(), np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0])),
    "poisson": (Poisson(np.linspace(-0.5, 0.5, 7)), np.array([0.0, 1.0, 3.0, 2.0, 0.0, 7.0, 12.0])),
    "student": (StudentT(0.3, 3.0), np.array([-1.0, 0.0, 2.0, 0.4, 0.5, 3.0, -6.0])),
}
"""One member of each family, and observations that it can have."""
SUPPORT = {"bernoulli": [0.0, 1.0], "poisson": np.arange(200.0)}
"""Values of t where they can be counted."""


@pytest.fixture(params=LIKELIHOODS)
def name(request):
    return request.param


@pytest.fixture
def case(name):
    return CASES[name]


@pytest.fixture(params=[name for name in LIKELIHOODS if name != "poisson"])
def bounded(request):
    return CASES[request.param]


def parabola(sites, eta):
    return -0.5 * sites.precision * eta**2 + sites.shift * eta + sites.const


def central(f, x, h):
    """Richardson's central difference, whose error is of order h⁴."""
    coarse, fine = ((f(x + step) - f(x - step)) / (2 * step) for step in (h, h / 2))
    return (4 * fine - coarse) / 3


def test_the_table_holds_the_families_tested_here():
    assert {name: type(case[0]) for name, case in CASES.items()} == LIKELIHOODS


def test_densities_sum_to_one(name, case):
    likelihood = case[0] if name != "poisson" else Poisson(0.4)
    for eta in (-2.0, 0.3, 1.5):
        if name in SUPPORT:
            t = np.asarray(SUPPORT[name])
            total = np.exp(likelihood.log_density(t, np.full(len(t), eta))).sum()
        else:
            total = quad(lambda t, eta=eta: np.exp(likelihood.log_density(t, eta)), -np.inf, np.inf, epsabs=1e-11)[0]
        assert total == pytest.approx(1.0, abs=1e-9)


def test_densities_are_scipys(name, case):
    likelihood, t = case
    expected = {
        "gaussian": lambda: norm.logpdf(t, ETA, np.sqrt(0.3)),
        "bernoulli": lambda: bernoulli.logpmf(1, sigmoid(np.where(t == 1, ETA, -ETA))),
        "poisson": lambda: poisson.logpmf(t, np.exp(ETA + likelihood.offset)),
        "student": lambda: student.logpdf(t, 3.0, ETA, np.sqrt(0.3)),
    }[name]()
    # log(1 + e^η) and log t! round like their size.
    np.testing.assert_allclose(likelihood.log_density(t, ETA), expected, rtol=1e-12, atol=1e-14)


def test_the_bernoulli_density_does_not_overflow():
    np.testing.assert_array_equal(Bernoulli().log_density(np.array([1.0, 0.0]), np.array([-1e4, 1e4])), -1e4)


def test_derivatives_are_differences(name, case):
    likelihood, t = case
    slope, curvature = likelihood.derivatives(t, ETA)
    # An error of h⁴ = 1e-12 times derivatives of at most (ν + 1)/σ^5 or e^η, and of 1e-15 · 40/h by rounding.
    np.testing.assert_allclose(slope, central(lambda eta: likelihood.log_density(t, eta), ETA, 1e-3), atol=1e-9)
    if name == "student":  # the density is not log-concave: the curvature is that of the bound, slope/(t - η)
        np.testing.assert_allclose(curvature, slope / (t - ETA), rtol=1e-12)
    else:
        found = central(lambda eta: likelihood.derivatives(t, eta)[0], ETA, 1e-3)
        np.testing.assert_allclose(curvature, -found, atol=1e-9)
    assert (curvature > 0).all()
    third = central(lambda eta: likelihood.derivatives(t, eta)[1], ETA, 1e-3)
    np.testing.assert_allclose(likelihood.skew(t, ETA), third, atol=1e-9)


def test_saturated_rows_keep_the_digits_of_their_slope():
    slope, curvature = Bernoulli().derivatives(np.array([1.0, 0.0]), np.array([40.0, -40.0]))
    np.testing.assert_allclose(slope, [np.exp(-40), -np.exp(-40)], rtol=1e-12)
    np.testing.assert_allclose(curvature, np.exp(-40), rtol=1e-12)


def test_the_expansion_touches_in_value_slope_and_curvature(case):
    likelihood, t = case
    sites = expansion(likelihood, t, ETA)
    slope, curvature = likelihood.derivatives(t, ETA)
    np.testing.assert_allclose(parabola(sites, ETA), likelihood.log_density(t, ETA), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sites.shift - sites.precision * ETA, slope, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sites.precision, curvature, rtol=1e-12)


def test_the_expansion_of_students_density_is_a_lower_bound():
    likelihood, t = CASES["student"]
    everywhere = np.linspace(-40, 40, 801)[:, None]
    below = parabola(expansion(likelihood, t, ETA), everywhere) - likelihood.log_density(t, everywhere)
    assert below.max() <= 1e-12
    assert below.min() < -1


def test_the_bound_touches_on_both_sides_of_its_centre_and_lies_below(bounded):
    likelihood, t = bounded
    contact = np.array([0.0, 1e-3, 0.3, 1.0, 2.0, 5.0, 20.0])
    sites, centre = likelihood.bound(t, contact), likelihood.centre(t)
    for side in (-1, 1):
        at = centre + side * contact
        np.testing.assert_allclose(parabola(sites, at), likelihood.log_density(t, at), rtol=1e-11, atol=1e-11)
    everywhere = np.linspace(-40, 40, 801)[:, None]
    below = parabola(sites, everywhere) - likelihood.log_density(t, everywhere)
    assert below.max() <= 1e-10
    exact = isinstance(likelihood, Gaussian)
    assert (np.abs(below).max() < 1e-10) if exact else (below.min() < -1)


def test_the_first_contact_is_one_that_the_bound_can_have(bounded):
    likelihood, t = bounded
    contact = likelihood.first_contact(t, 0.3)
    assert contact.shape == t.shape
    if not isinstance(likelihood, Bernoulli):  # touches at the level itself, where η is at first
        sites = likelihood.bound(t, contact)
        np.testing.assert_allclose(parabola(sites, 0.3), likelihood.log_density(t, np.full(7, 0.3)), rtol=1e-11)


def test_without_a_bound_there_is_a_clear_message():
    for call in (Poisson().bound, Poisson().first_contact):
        with pytest.raises(NotImplementedError, match=r"Poisson.*Laplace"):
            call(np.ones(2), 1.0)


def test_the_base_level_has_the_largest_likelihood(name, case, rng):
    likelihood, t = case
    weight = rng.uniform(0.5, 2, len(t))
    level = likelihood.base_level(t, weight)
    if name == "student":  # the median: a robust level, where Σ weight |t - η| is least
        for other in t:
            assert weight @ np.abs(t - level) <= weight @ np.abs(t - other)
        return
    best = minimize_scalar(lambda eta: -float(weight @ likelihood.log_density(t, np.full(7, eta))), bracket=(-1, 1))
    assert level == pytest.approx(best.x, abs=1e-6)  # the square root of rounding, as flat as a maximum is


def test_integer_weights_are_repeated_rows(case, rng):
    likelihood, t = case
    times = np.array([1, 3, 0, 2, 1, 5, 2])
    rows, eta = np.arange(7).repeat(times), rng.standard_normal(7)
    if isinstance(likelihood, Poisson):
        likelihood = Poisson(0.4)
    once, repeated = expansion(likelihood, t, ETA, times), expansion(likelihood, t[rows], ETA[rows])
    again = weighted(expansion(likelihood, t, ETA), times)
    assert once.value(eta) == pytest.approx(repeated.value(eta[rows]), rel=1e-12)
    for site, other, plain in zip(once, again, repeated, strict=True):
        np.testing.assert_allclose(site, np.bincount(rows, plain, minlength=7), rtol=1e-12)
        np.testing.assert_array_equal(site, other)
    assert likelihood.base_level(t, times.astype(float)) == pytest.approx(
        likelihood.base_level(t[rows], np.ones(len(rows)))
    )


@pytest.mark.parametrize("rule", [noise_em, noise_mackay])
def test_a_gaussian_noise_is_updated_by_the_rule(rule, rng):
    """Σ weight × variance of η is tr(ΦΣΦᵀ) = σ² Σγ, which is what the rules ask for."""
    t, mean, var, weight = rng.standard_normal(9), rng.standard_normal(9), rng.random(9), rng.uniform(0.5, 2, 9)
    new = Gaussian(0.3, c=0.2, d=0.1).updated(t, weight, mean, var, rule)
    expected = rule(weight @ (t - mean) ** 2, 0.3, weight @ var / 0.3, weight.sum(), 0.2, 0.1)
    assert (new.noise, new.c, new.d) == (pytest.approx(expected), 0.2, 0.1)


def test_likelihoods_without_parameters_stay_as_they_are(rng):
    for likelihood in (Bernoulli(), Poisson(0.2)):
        assert likelihood.learns is False
        assert likelihood.updated(*np.ones((4, 3)), noise_em) is likelihood
    assert Gaussian().learns
    assert StudentT().learns


def em_bound(noise, freedom, old, square, weight):
    """Expected complete log density of the mixture N(t; η, σ²/u), u ~ Gamma(ν/2, ν/2), under the old posterior of u."""
    u = old.mixing(square)
    half = (old.freedom + 1) / 2
    log_u = digamma(half) - np.log(half) + np.log(u)
    gaussian = 0.5 * log_u - 0.5 * np.log(noise) - 0.5 * u * square / noise
    const = gamma.logpdf(1.0, freedom / 2, scale=2 / freedom)  # of the Gamma density: log p(u) at u = 1 is const
    prior = const + freedom / 2 * (log_u - u + 1) - log_u
    return float(weight @ (gaussian + prior))


@pytest.fixture
def heavy(rng):
    """Squares (t - η)² + variance of rows with heavy tails."""
    mean, var = rng.standard_normal(60), 0.1 * rng.random(60)
    t = mean + 0.5 * rng.standard_t(2.5, 60)
    return t, mean, var, rng.uniform(0.5, 2, 60)


def test_students_noise_and_freedom_are_an_em_step(heavy):
    """The noise is the best of the expected log density, the freedom then of the density itself, by brute force."""
    t, mean, var, weight = heavy
    square = (t - mean) ** 2 + var
    old = StudentT(0.4, 6.0, learns_freedom=True)
    new = old.updated(t, weight, mean, var, noise_em)
    best = minimize_scalar(lambda x: -em_bound(np.exp(x), 6.0, old, square, weight), bounds=(-5, 3), method="bounded")
    assert np.log(new.noise) == pytest.approx(best.x, abs=1e-4)
    best = minimize_scalar(
        lambda x: -float(weight @ StudentT(new.noise, np.exp(x)).log_density(np.sqrt(square), np.zeros_like(square))),
        bounds=(0, np.log(100)),
        method="bounded",
    )
    assert np.log(new.freedom) == pytest.approx(best.x, abs=1e-4)
    fixed = StudentT(0.4, 6.0).updated(t, weight, mean, var, noise_em)
    assert (fixed.noise, fixed.freedom) == (new.noise, 6.0)


def test_repeated_updates_end_at_the_maximum_of_the_likelihood(heavy):
    t, mean, _, weight = heavy
    found = StudentT(1.0, 10.0, learns_freedom=True)
    for _ in range(500):
        found = found.updated(t, weight, mean, np.zeros(60), noise_em)

    def loss(x):
        return -float(weight @ StudentT(np.exp(x[0]), np.exp(x[1])).log_density(t, mean))

    best = minimize(loss, np.log([found.noise, found.freedom]) + 0.3, method="Nelder-Mead", options={"xatol": 1e-6})
    assert 1.5 < found.freedom < 20
    np.testing.assert_allclose(np.log([found.noise, found.freedom]), best.x, atol=2e-3)  # EM converges linearly


@pytest.mark.parametrize("tails", ["none", "huge"])
def test_the_freedom_stays_in_its_range(tails, rng):
    t = rng.uniform(-1, 1, 200) if tails == "none" else np.sinh(3 * rng.standard_cauchy(200).clip(-30, 30))
    found = StudentT(1.0, 5.0, learns_freedom=True, range=(1.0, 20.0))
    for _ in range(300):
        found = found.updated(t, np.ones(200), np.zeros(200), np.zeros(200), noise_em)
    assert found.freedom == (20.0 if tails == "none" else 1.0)


def test_poisson_deviance_is_twice_the_log_likelihood_ratio():
    t, rate = np.array([0.0, 1.0, 7.0]), np.array([0.3, 2.0, 6.0])
    with np.errstate(divide="ignore"):
        best = poisson.logpmf(t, np.where(t > 0, t, 1e-300))
    np.testing.assert_allclose(poisson_deviance(t, rate), 2 * (best - poisson.logpmf(t, rate)), rtol=1e-12)
