"""The parts of our sequential searches, driven as SparseBayes V2.0 drives its own, end where that program ended.

Left to themselves our searches go another way up (for regression the noise goes along with every action, for classes
all precisions do), and the evidence of a kernel model has many maxima: this is what tells another way from another sum.
The loop below knows only the order of things, and where SparseBayes stops; what an action brings, its new precision,
the posterior after it, the evidence and the best noise are all asked of the library.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparsebayes.core.kernels import rbf
from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.prices import FREE, Marginal
from sparsebayes.core.priors import ARD
from sparsebayes.core.scales import ard_candidate, noise_mackay
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.candidates import Candidates, least_squares
from sparsebayes.engine.least_squares import LeastSquares, Solution, empty
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.scale_fit import ScaleFit
from sparsebayes.engine.state import State
from sparsebayes.engine.view import Mode

REFERENCE = Path(__file__).parents[1] / "reference"
RUNS = [
    "reg_lin_n100_d50__sparsebayes_gaussian_lin_bias__tight",
    "reg_lin_n50_d100__sparsebayes_gaussian_lin_bias__tight",
    "reg_sinc_g01__sparsebayes_gaussian_rbf3__tight",
    "reg_sinc_g01__sparsebayes_gaussian_rbf3_bias__tight",
    "reg_sinc_g01__sparsebayes_gaussian_rbf3_fixednoise__tight",
    "reg_sinc_g01__sparsebayes_gaussian_rbf3_freebias__tight",
    "reg_friedman1__sparsebayes_gaussian_rbf1p5_bias__tight",
    "cls2d_moons_n150__sparsebayes_bernoulli_rbf0p5_bias__tight",
    "cls2d_ripley_n250__sparsebayes_bernoulli_rbf0p5__tight",
    "cls2d_ripley_n250__sparsebayes_bernoulli_rbf0p5_bias__tight",
    "log_iris_vv__sparsebayes_bernoulli_rbf2_bias__tight",
    "log_n200_d10__sparsebayes_bernoulli_lin_bias__tight",
    "log_n60_d300__sparsebayes_bernoulli_lin_bias__tight",
]
NO_BIAS, BIAS, FREE_BIAS, FIXED_NOISE = range(4)
"""What `bias_code` says: a last column of ones like any other, or one without a prior; or the noise is given."""
NEWTON_STEPS, GRADIENT = 25, 1e-6
"""SparseBayes takes at most so many steps to a mode, and none once all of the gradient is smaller than this."""
FREE_PRECISION = np.finfo(np.float64).eps
"""What a column "without a prior" has for a precision there."""


@pytest.fixture(params=RUNS)
def run(request):
    """What was recorded, the design with columns of length one, and the target."""
    recorded = json.loads((REFERENCE / f"{request.param}.json").read_text())
    data = np.loadtxt(REFERENCE / recorded["data"]["train"], delimiter=",")
    X, t, options = data[:, :-1], data[:, -1], recorded["options"]
    Phi = X if options["basis"] == "lin" else rbf(X, X, gamma=1 / options["width"] ** 2)
    if options["bias_code"] == BIAS:
        Phi = np.column_stack([Phi, np.ones(len(t))])
    return recorded, Phi / np.linalg.norm(Phi, axis=0), t


NO_PRICE = Marginal.at(FREE, [])


class Regression(State):
    """Between two changes of the noise, the evidence is summed up from what the actions were said to bring."""

    def __init__(self, problem, start, least_noise, least_change):
        super().__init__(problem, start)
        self.survey(NO_PRICE)
        self.least_noise, self.least_change = least_noise, least_change

    def move(self, j, alpha):
        self.evidence += self.moves(NO_PRICE).gain[j]
        return super().move(j, alpha)

    def noise_moves(self):
        """Re-estimate the noise if it would change; says whether it did."""
        noise = max(noise_mackay(*self.problem.noise_terms(self)), self.least_noise)
        if abs(np.log(noise / self.noise)) <= self.least_change:
            return False
        self.set_scales(self.alpha_inside, noise)
        return True

    @property
    def offset(self):
        """Their log evidence less ours: they leave out -½N log 2π.

        Where the bias is free, ours has a flat prior of density one on the intercept c. Theirs has N(0, 1/ε) on the
        weight v = c√N of a column of length one, with ε so small that this density is √(ε/2π) wherever the likelihood
        is not nought: as a density of c, √(Nε/2π). What that leaves out is ½εv², far below rounding.
        """
        n = self.problem.n_weighted
        prior = np.log(n * FREE_PRECISION / (2 * np.pi)) if self.problem.flat_intercept else 0.0
        return 0.5 * (n * np.log(2 * np.pi) + prior)


class Classes(State):
    """Two classes: after each action the view is taken anew, where SparseBayes's way to the mode stops.

    It stops short, by up to 1e-6 in the gradient. With exact modes the path is the same to 3e-4 nats, and its end to
    2e-5; to have it to 1e-6, one has to stop where it does, and so to start from the weights that the action left.
    (How it shortens its steps is not seen here: on none of these ways had one to be shortened.)
    """

    offset = 0.0

    def __init__(self, posed, active, alpha, w):
        self.posed = posed
        self.look(active, alpha, w)

    def look(self, active, alpha, w):
        """Newton's method from the given weights, and all candidates under the view where it stops."""
        posed, design, mode = self.posed, self.posed.design.keep(active), Mode(self.posed.likelihood, w)
        Phi = design.columns(slice(None))
        for _ in range(NEWTON_STEPS):
            view = mode.view(posed, design, alpha)
            gradient = Phi.T @ posed.likelihood.derivatives(posed.t, Phi @ mode.w)[0] - alpha * mode.w
            if np.all(np.abs(gradient) < GRADIENT):
                break
            mode = mode.follow(posed, design, view, alpha)
        else:
            raise AssertionError("SparseBayes would have stopped on its limit of Newton steps")
        # The view at these weights, not at the posterior mean, which is a Newton step ahead of them.
        here = replace(view, posterior=replace(view.posterior, mean=mode.w), eta=Phi @ mode.w)
        evidence = mode.penalised(posed, design, alpha) + 0.5 * view.posterior.logdet + posed.prior.scale_term(alpha)
        fit = ScaleFit(active, alpha, mode, design, here, evidence, True, 0.0)
        found = Candidates.of(posed, fit)
        super().__init__(least_squares(posed, fit, np.arange(len(found.S))), Solution(active, alpha, 1.0))
        self.working = np.arange(len(found.S))
        self.mean, self.S, self.Q, self.evidence = mode.w, found.S, found.Q, evidence

    def factors(self):
        """In the model, q is Q/(αΣ_jj) and not μ_j/Σ_jj: the same at the mode, where Q = αμ, but not short of it."""
        s, q = super().factors()
        q[self.active] = self.Q[self.active] / (self.alpha[self.active] * np.diag(self.Sigma))
        return s, q

    def move(self, j, alpha):
        action = super().move(j, alpha)
        active = np.array(self.active)
        self.look(active, self.alpha[active], self.mean)
        return action

    def noise_moves(self):
        return False


def first_regression(Phi, t, recorded):
    """The column most along the target, at its best precision for a noise of a tenth of the target's deviation.

    A free bias is a flat intercept, and then all that there is at first.
    """
    n, options = len(Phi), recorded["options"]
    free, fixed = options["bias_code"] == FREE_BIAS, options["bias_code"] == FIXED_NOISE
    rows, target = (DenseRows.of(Phi).centred(np.ones(n)), t - t.mean()) if free else (DenseRows.of(Phi), t)
    problem = LeastSquares(design=rows, t=target, n_weighted=float(n), flat_intercept=free)
    noise = recorded["results"]["noise_var"] if fixed else 0.01 * np.var(t, ddof=1)
    reached = Phi.T @ t
    first = int(np.argmax(np.abs(reached)))
    alpha = ard_candidate(np.array([1 / noise]), reached[[first]] / noise)
    start = empty(noise) if free else Solution(np.array([first]), np.where(np.isinf(alpha), 1e3, alpha), noise)
    least_change = np.inf if fixed else options["MinDeltaLogBeta"]
    return Regression(problem, start, np.var(t, ddof=1) / options["BetaMaxFactor"], least_change)


def first_classes(Phi, t):
    """The column most along ±1, with the weight that brings it nearest to the log-odds of 0.95 and 0.05."""
    weight, rows = np.ones(len(t)), DenseRows.of(Phi)
    posed = Problem(design=rows, t=t, weight=weight, likelihood=Bernoulli(), prior=ARD(), flat_intercept=False)
    sign = 2 * t - 1
    first = np.argmax(np.abs(Phi.T @ sign), keepdims=True)
    w = Phi[:, first].T @ (sign * np.log(0.95 / 0.05))
    return Classes(posed, first, np.clip(1 / w**2, 1e-3, 1e3), w)


def driven(state, Phi, options):
    """Take the actions in SparseBayes's order until it would stop; returns the log evidence after each change."""
    aligned = []  # pairs: a candidate that was turned away, and the column in the model which it is too like
    path = [state.evidence]
    for step in range(1, options["iterations_max"] + 1):
        ended = not act(state, Phi, aligned, path, options)
        due = ended or step <= options["BetaUpdateStart"] or step % options["BetaUpdateFrequency"] == 0
        if due and state.noise_moves():
            path.append(state.evidence)
        elif ended:
            return path
    raise AssertionError("SparseBayes's stop rule was not reached")


def act(state, Phi, aligned, path, options):
    """One action, deletions first; says whether there was any worth its while."""
    moves = state.moves(NO_PRICE)
    inside = np.isfinite(state.alpha)
    leaves = inside & np.isinf(moves.alpha)
    gains = moves.gain.copy()
    gains[[out for out, _ in aligned]] = 0.0
    if len(state.active) + state.problem.flat_intercept == 1:  # the last column never leaves
        gains[leaves] = 0.0
    elif leaves.any():
        gains[~leaves] = 0.0
    best = int(np.argmax(gains))
    goal = float(moves.alpha[best])
    if gains[best] <= 0:
        return False
    if inside[best] and np.isfinite(goal) and abs(np.log(goal / state.alpha[best])) < options["MinDeltaLogAlpha"]:
        return False
    if not inside[best]:
        alike = [j for j in state.active if Phi[:, j] @ Phi[:, best] > options["AlignmentMax"]]
        if alike:
            aligned += [(best, j) for j in alike]
            return True
    action = state.move(best, goal)
    if action == "delete":
        aligned[:] = [pair for pair in aligned if pair[1] != best]
    path.append(state.evidence)
    return True


def test_the_same_start_and_order_end_at_the_same_evidence(run):
    recorded, Phi, t = run
    options, results = recorded["options"], recorded["results"]
    state = first_classes(Phi, t) if options["likelihood"] == "Bernoulli" else first_regression(Phi, t, recorded)
    path = np.array(driven(state, Phi, options)) + state.offset
    assert path[-1] == pytest.approx(results["logML_final"], abs=1e-6)
    free = [Phi.shape[1]] if options["bias_code"] == FREE_BIAS else []
    assert sorted(state.active) + free == results["relevant_0based"]
    # Its record begins after the first update. All the way up they are held together, one by one. At the end several
    # actions bring 1e-14 nats or less each, and rounding chooses among them and says when there are no more: who has
    # ended stays where he is.
    theirs = np.array(results["logML_trace"])
    ours = path[1 : 1 + len(theirs)]
    ours = np.append(ours, np.full(len(theirs) - len(ours), path[-1]))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
