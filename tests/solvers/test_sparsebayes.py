"""The parts of the sequential search, driven as SparseBayes V2.0 drives its own, end where that program ended.

Left to itself our search goes another way up (it takes the noise along with every action), and the evidence of a kernel
model has many maxima: this is what tells another way from another sum. The loop below knows only the order of things:
what an action brings, its new precision, the posterior after it and the best noise are all asked of the library.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from sparsebayes.core.kernels import rbf
from sparsebayes.core.scales import ard_candidate, noise_mackay
from sparsebayes.data.dense import DenseRows
from sparsebayes.solvers.candidates import Candidates
from sparsebayes.solvers.problem import GaussianProblem, Solution

REFERENCE = Path(__file__).parents[1] / "reference"
N_COMPARED = 120
"""Updates that are held to the recorded ones, one by one."""
RUNS = [
    "reg_lin_n100_d50__sparsebayes_gaussian_lin_bias__tight",
    "reg_lin_n50_d100__sparsebayes_gaussian_lin_bias__tight",
    "reg_sinc_g01__sparsebayes_gaussian_rbf3__tight",
    "reg_sinc_g01__sparsebayes_gaussian_rbf3_bias__tight",
    "reg_friedman1__sparsebayes_gaussian_rbf1p5_bias__tight",
]


@pytest.fixture(params=RUNS)
def run(request):
    """What was recorded, the design with columns of length one, and the target."""
    recorded = json.loads((REFERENCE / f"{request.param}.json").read_text())
    data = np.loadtxt(REFERENCE / recorded["data"]["train"], delimiter=",")
    X, t, options = data[:, :-1], data[:, -1], recorded["options"]
    Phi = X if options["basis"] == "lin" else rbf(X, X, gamma=1 / options["width"] ** 2)
    if options["bias_code"] == 1:
        Phi = np.column_stack([Phi, np.ones(len(t))])
    return recorded, Phi / np.linalg.norm(Phi, axis=0), t


def first_model(Phi, t):
    """The column most along the target, at its best precision for a noise of a tenth of the target's deviation."""
    noise = 0.01 * np.var(t, ddof=1)
    reached = Phi.T @ t
    first = int(np.argmax(np.abs(reached)))
    alpha = ard_candidate(np.array([1 / noise]), reached[[first]] / noise)
    return Solution(np.array([first]), np.where(np.isinf(alpha), 1e3, alpha), noise)


def driven(state, Phi, t, options):
    """Take the actions in SparseBayes's order until it would stop; returns the log evidence after each change.

    That is summed up from what the actions were said to bring, and computed anew where the noise moves.
    """
    least_noise = np.var(t, ddof=1) / options["BetaMaxFactor"]
    aligned = []  # pairs: a candidate that was turned away, and the column in the model which it is too like
    path = [state.evidence]
    for step in range(1, options["iterations_max"] + 1):
        ended = not act(state, Phi, aligned, path, options)
        if ended or step <= options["BetaUpdateStart"] or step % options["BetaUpdateFrequency"] == 0:
            before = state.noise
            noise = max(state.new_noise(noise_mackay), least_noise)
            if abs(np.log(noise / before)) > options["MinDeltaLogBeta"]:
                state.noise = noise
                state.refresh()
                path.append(state.evidence)
            elif ended:
                return path
    raise AssertionError("SparseBayes's stop rule was not reached")


def act(state, Phi, aligned, path, options):
    """One action, deletions first; says whether there was any worth its while."""
    moves = state.moves()
    inside = np.isfinite(state.alpha)
    leaves = inside & np.isinf(moves.alpha) if len(state.active) > 1 else np.zeros_like(inside)
    gains = moves.gain.copy()
    gains[inside & np.isinf(moves.alpha) & ~leaves] = 0.0
    gains[[out for out, _ in aligned]] = 0.0
    if leaves.any():
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
    path.append(path[-1] + gains[best])
    return True


def test_the_same_start_and_order_end_at_the_same_evidence(run):
    recorded, Phi, t = run
    n, d = Phi.shape
    problem = GaussianProblem(
        DenseRows.of(Phi), t, float(n), flat_intercept=False, price=0.0, a=0.0, b=np.zeros(d), c=0.0, d=0.0
    )
    state = Candidates(problem, first_model(Phi, t))
    path = np.array(driven(state, Phi, t, recorded["options"])) + 0.5 * n * np.log(2 * np.pi)
    results = recorded["results"]
    assert path[-1] == pytest.approx(results["logML_final"], abs=1e-6)
    assert sorted(state.active) == results["relevant_0based"]
    # Its record begins after the first update. All the way up, until steps are too small to tell apart:
    theirs = np.array(results["logML_trace"][:N_COMPARED])
    np.testing.assert_allclose(path[1 : 1 + len(theirs)], theirs, rtol=0, atol=1e-6)
