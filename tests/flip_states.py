"""Chains over sets of columns after some flips, and what they keep current, from scratch."""

import numpy as np
from numpy.testing import assert_allclose

from sparsebayes.engine.chain import Chain


def after_flips(sets):
    """A chain after five flips, two of them of the same column."""
    chain = Chain(sets, np.random.default_rng(0))
    chain.start(np.array([0, 4]), 10)
    for j in (1, 2, 0, 5, 1):
        chain.flips.toggle(j)
    return chain


def assert_sums_right(chain, **tolerance):
    """s, q and ρ of the present set, by a dense inverse; for one target or several."""
    flips, problem, active = chain.flips, chain.sets.problem, sorted(chain.flips.active)
    Phi, t = problem.design.columns(slice(None)), problem.t
    M = np.linalg.inv(np.eye(len(t)) + chain.c * Phi[:, active] @ Phi[:, active].T)
    assert_allclose(flips.s, np.einsum("ij,ik,kj->j", Phi, M, Phi), err_msg="s", **tolerance)
    assert_allclose(flips.q, Phi.T @ M @ t, err_msg="q", **tolerance)
    rest = np.einsum("i...,ik,k...->...", t, M, t) + chain.sets.floor
    assert_allclose(flips.rest, rest, err_msg="rest", **tolerance)
