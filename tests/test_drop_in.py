"""ARDRegressor inside other packages, where they are installed: pysindy, chaospy, trainstation, sysidentpy, mne."""

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from sklearn.linear_model import ARDRegression

from sparsebayes import ARDRegressor

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def quiet():
    """Other packages warn of many things."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def f1(found, true):
    return 2 * (found & true).sum() / (found.sum() + true.sum())


def lorenz(t, x):
    return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_pysindy_finds_the_lorenz_equations(noise):
    ps = pytest.importorskip("pysindy")
    time = np.arange(0, 10, 0.002)
    x = solve_ivp(lorenz, (0, 10), [-8, 8, 27], t_eval=time, rtol=1e-9, atol=1e-9).y.T
    x = x + noise * np.random.default_rng(0).standard_normal(x.shape)
    names = ps.PolynomialLibrary(degree=3).fit(x).get_feature_names(["x", "y", "z"])
    true = np.array([[name in terms for name in names] for terms in ({"x", "y"}, {"x", "x z", "y"}, {"x y", "z"})])

    def terms(optimizer):
        smooth = ps.SmoothedFiniteDifference(smoother_kws={"window_length": 31})
        model = ps.SINDy(
            optimizer=optimizer, feature_library=ps.PolynomialLibrary(degree=3), differentiation_method=smooth
        )
        return np.abs(model.fit(x, t=0.002).coefficients()) > 1e-8

    ours = f1(terms(ps.WrappedOptimizer(ARDRegressor(fit_intercept=False, average=False))), true)
    tuned = max(f1(terms(ps.STLSQ(threshold=each)), true) for each in (0.05, 0.1, 0.2, 0.5, 1.0))
    assert ours >= tuned - 0.05


def ishigami(x):
    return np.sin(x[0]) + 7 * np.sin(x[1]) ** 2 + 0.1 * x[2] ** 4 * np.sin(x[0])


def borehole(x):
    rw, r, Tu, Hu, Tl, Hl, L, Kw = x
    log = np.log(r / rw)
    return 2 * np.pi * Tu * (Hu - Hl) / (log * (1 + 2 * L * Tu / (log * rw**2 * Kw) + Tu / Tl))


RANGES = [
    (0.05, 0.15),
    (100, 50000),
    (63070, 115600),
    (990, 1110),
    (63.1, 116),
    (700, 820),
    (1120, 1680),
    (9855, 12045),
]


@pytest.mark.parametrize(("name", "order", "n"), [("ishigami", 8, 200), ("borehole", 3, 150)])
def test_chaospy_expansions_with_honest_intervals(name, order, n):
    cp = pytest.importorskip("chaospy")
    bounds = [(-np.pi, np.pi)] * 3 if name == "ishigami" else RANGES
    function = ishigami if name == "ishigami" else borehole
    space = cp.J(*(cp.Uniform(*ends) for ends in bounds))
    expansion = cp.generate_expansion(order, space)
    nodes, fresh = space.sample(n, rule="sobol"), space.sample(2000, rule="random", seed=1)
    y, new = function(nodes), function(fresh)
    columns, there = expansion(*nodes).T, expansion(*fresh).T
    error, covered = {}, {}
    for key, model in (("ours", ARDRegressor(fit_intercept=False)), ("theirs", ARDRegression(fit_intercept=False))):
        surrogate = cp.fit_regression(expansion, nodes, y, model=model)
        error[key] = np.sqrt(np.mean((surrogate(*fresh) - new) ** 2)) / new.std()
        mean, std = model.fit(columns, y).predict(there, return_std=True)
        covered[key] = (np.abs(new - mean) <= 1.645 * std).mean()
    assert error["ours"] <= 1.02 * error["theirs"]
    assert 0.85 <= covered["ours"] <= 0.97


def test_trainstation_takes_it_as_a_fit_method():
    methods = pytest.importorskip("trainstation.fit_methods")
    from trainstation import Optimizer

    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 60))
    y = X[:, :4] @ np.array([2.0, -1.0, 0.7, 0.5]) + 0.1 * rng.standard_normal(100)

    def fit(X, y, **_):
        return {"parameters": ARDRegressor(fit_intercept=False).fit(X, y).coef_}

    methods.fit_methods["sparsebayes"] = fit
    methods.available_fit_methods.append("sparsebayes")
    try:
        found = {}
        for method in ("sparsebayes", "ardr", "lasso"):
            optimizer = Optimizer((X, y), fit_method=method, train_size=0.8, seed=0)
            optimizer.train()
            found[method] = optimizer.rmse_test
    finally:
        methods.available_fit_methods.remove("sparsebayes")
        del methods.fit_methods["sparsebayes"]
    assert found["sparsebayes"] <= 1.05 * min(found.values())


def test_sysidentpy_takes_it_as_an_estimator():
    pytest.importorskip("sysidentpy")
    from sysidentpy.basis_function import Polynomial
    from sysidentpy.general_estimators import NARX

    rng = np.random.default_rng(0)
    u, y = rng.uniform(-1, 1, (1000, 1)), np.zeros((1000, 1))
    for k in range(2, 1000):
        y[k] = 0.2 * y[k - 1] + 0.1 * y[k - 1] * u[k - 1] + 0.9 * u[k - 2] + 0.01 * rng.standard_normal()
    estimator = ARDRegressor(fit_intercept=False)
    model = NARX(base_estimator=estimator, xlag=2, ylag=2, basis_function=Polynomial(degree=2))
    model.fit(X=u[:800], y=y[:800])
    predicted = model.predict(X=u[800:], y=y[800:])
    assert np.sqrt(np.mean((predicted[2:] - y[802:]) ** 2)) < 0.05 * y.std()
    assert len(model.base_estimator.active_) == 3


def test_joint_outputs_find_more_sources_than_mne():
    pytest.importorskip("mne")
    from mne.inverse_sparse._gamma_map import _gamma_map_opt

    ours, theirs = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        G, W = rng.standard_normal((60, 300)), np.zeros((300, 10))
        W[:6] = rng.choice([-1, 1], (6, 10))
        noise = np.sqrt(6.0)
        Y, true = G @ W + noise * rng.standard_normal((60, 10)), np.arange(300) < 6
        model = ARDRegressor(multi_output="joint", shared_noise=True, fit_intercept=False).fit(G, Y)
        ours.append(f1(np.isin(np.arange(300), model.active_[0]), true))
        _, kept = _gamma_map_opt(Y.copy(), G.copy(), alpha=noise**2, tol=1e-6, maxit=2000, verbose=False)
        theirs.append(f1(np.isin(np.arange(300), kept), true))
    assert np.mean(ours) >= 0.98
    assert np.mean(ours) > np.mean(theirs)
