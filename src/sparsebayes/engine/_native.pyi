"""What native/module.cpp offers."""

from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.least_squares import LeastSquares

class NotPositiveDefinite(Exception): ...

class State:
    active: list[int]
    noise: float
    evidence: float
    objective: float
    outside_gain: float
    residual: float
    gamma_sum: float
    penalty: float
    variance_sum: float
    n_active: int
    jitter: float
    alpha_inside: FloatArray
    alpha: FloatArray
    S: FloatArray
    Q: FloatArray
    mean: FloatArray
    Sigma: FloatArray
    root: FloatArray
    logdet: float
    gram: FloatArray
    copies: IntArray
    def __init__(
        self,
        problem: LeastSquares,
        active: list[int],
        alpha: list[float],
        noise: float,
        *,
        a: float,
        b: FloatArray,
        rate: float,
        min_alpha: float,
        positive: bool,
        nats: FloatArray,
        copy: float,
        lost_digits: float,
        working: int,
        prefetch: int,
        jitter_ladder: list[float],
    ) -> None: ...
    def survey(self, price: tuple[float, float, float, float]) -> None: ...
    def best(
        self, may_add: bool, min_novelty: float, price: tuple[float, float, float, float]
    ) -> tuple[int, float, float]: ...
    def move(self, j: int, alpha: float) -> str: ...
    def set_scales(self, alpha: FloatArray, noise: float) -> None: ...
    def rescale(self, noise: float, objective: float) -> None: ...
    def refresh(self) -> None: ...
