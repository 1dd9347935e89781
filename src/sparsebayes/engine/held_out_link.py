"""The log-odds of averaged models, made as sure as labels that a model has not seen allow.

A label given all other rows needs no further fit: draws of the posterior count by one over the probability that they
give to the label (importance sampling). With z the log-odds of the average over the draws, a z + b are those under
which these labels are most probable. If the model holds, a is near one and b near zero. Where few rows meet many
features, the prior of the weights decides how sure predictions are, and the link corrects that. See
docs/mathematics.md, section 9.4.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from sparsebayes.core.special import log_sigmoid, log_sum, sigmoid
from sparsebayes.core.types import FloatArray
from sparsebayes.engine.label_regression import Link
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.sets import Draw

NUMBERS = 10_000_000
"""Log-odds that are held at a time, rows times draws: 80 MB."""


def link_of(problem: Problem, draws: Sequence[Draw]) -> Link:
    """The link of an average over models of a logistic problem."""
    return probable_link(left_out_odds(problem, draws), problem.t, problem.weight, problem.flat_intercept)


def left_out_odds(problem: Problem, draws: Sequence[Draw]) -> FloatArray:
    """Log-odds of label 1 for every row given the others."""
    Phi, share = problem.design.columns(slice(None)), np.array([draw.share for draw in draws])
    block = max(1, NUMBERS // len(draws))
    odds = []
    for start in range(0, len(Phi), block):
        rows = slice(start, start + block)
        eta = np.column_stack([draw.level + Phi[rows, draw.active] @ draw.weights for draw in draws])
        odds.append(without_own_label(eta, share, problem.t[rows], problem.weight[rows]))
    return np.concatenate(odds)


def without_own_label(eta: FloatArray, share: FloatArray, t: FloatArray, weight: FloatArray) -> FloatArray:
    """Log-odds of each row, a line of η, averaged over draws that do not know its label.

    A row that counts several times leaves once. No draw counts more than √S times the mean of all S, so that the
    average has a finite variance (Ionides 2008).
    """
    sign, log_share = (2 * t - 1)[:, None], np.log(share / share.sum())
    log_ratio = -np.minimum(weight, 1.0)[:, None] * log_sigmoid(sign * eta)
    most = log_sum(log_share + log_ratio)[:, None] + 0.5 * np.log(len(share))
    log_weight = log_share + np.minimum(log_ratio, most)
    return np.asarray(log_sum(log_weight + log_sigmoid(eta)) - log_sum(log_weight + log_sigmoid(-eta)))


def probable_link(odds: FloatArray, t: FloatArray, weight: FloatArray, shifts: bool) -> Link:
    """a and b under which labels are most probable; log a and b have standard normal priors.

    The priors keep the link near a = 1, b = 0 unless labels say otherwise, also where classes are separable. Without
    an intercept (`shifts` is False) b is zero.
    """
    sign = 2 * t - 1

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        a, b = float(np.exp(x[0])), float(x[1])
        z = sign * (a * odds + b)
        pull = weight * sign * sigmoid(-z)
        slopes = np.array([x[0] - a * float(pull @ odds), x[1] - float(pull.sum())])
        value = -float(weight @ log_sigmoid(z)) + 0.5 * float(x @ x)
        return value, slopes if shifts else slopes * [1.0, 0.0]

    found = minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-5 * float(weight.sum())})
    return Link(float(np.exp(found.x[0])), float(found.x[1]))
