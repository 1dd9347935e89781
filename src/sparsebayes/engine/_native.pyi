"""What native/module.cpp offers."""

from collections.abc import Callable

from sparsebayes.core.prices import Marginal
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.least_squares import LeastSquares

class NotPositiveDefinite(Exception): ...

def best_replacements(
    S: FloatArray,
    Q: FloatArray,
    least: FloatArray,
    common: FloatArray,
    beyond: FloatArray,
    var: FloatArray,
    mean: FloatArray,
    taken: FloatArray,
    residual: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]: ...

class Constants:
    def __init__(
        self,
        *,
        copy: float,
        lost_digits: float,
        min_share_left: float,
        prefetch: int,
        jitter_ladder: tuple[float, ...],
        step_parts: tuple[float, ...],
        longest: float,
        min_gamma: float,
        damping: tuple[float, ...],
    ) -> None: ...

class State:
    problem: LeastSquares
    active: list[int]
    noise: float
    age: int
    evidence: float
    objective: float
    outside_gain: float
    residual: float
    gamma_sum: float
    penalty: float
    variance_sum: float
    n_active: int
    n_units: int
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
        constants: Constants,
        working_size: int,
        *,
        a: float,
        b: FloatArray,
        rate: float,
        min_alpha: float,
        positive: bool,
        nats: FloatArray,
    ) -> None: ...
    def survey(self, price: Marginal) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    def best(self, may_add: bool, min_novelty: float, price: Marginal) -> tuple[int, float, float]: ...
    def advance(
        self,
        n: int,
        tol: float,
        additions: int,
        min_novelty: float,
        price: Callable[[int], Marginal],
        noise_floor: float,
        follows: bool,
        every: int,
        due: str,
    ) -> list[tuple[float, float, int, float, str]]: ...
    def move(self, j: int, alpha: float) -> str: ...
    def set_scales(self, alpha: FloatArray, noise: float) -> None: ...
    def joint_step(self, tol: float, noise_floor: float) -> None: ...
    def rescale(self, noise_floor: float) -> None: ...
    def fresh_objective(self) -> float: ...
    def refresh(self) -> None: ...

class Flips:
    active: list[int]
    picked: list[int]
    total: float
    log_total: float
    rest: FloatArray | float
    s: FloatArray
    q: FloatArray
    p: FloatArray
    weight: FloatArray
    variance: FloatArray
    log_in: FloatArray
    eagerness: FloatArray
    sums: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray | float, float]
    def __init__(
        self,
        gram: FloatArray | Callable[[int], FloatArray],
        rows: FloatArray,
        projection: FloatArray,
        log_prior: FloatArray,
        n: float,
        spread: FloatArray,
        shares_noise: bool = False,
        *,
        steepest: float,
        rounding: float,
    ) -> None: ...
    def place(
        self,
        active: IntArray,
        gram: FloatArray,
        inner: FloatArray,
        by_rows: bool,
        s: FloatArray,
        q: FloatArray,
        rest: FloatArray | float,
        c: float,
        log_odds: FloatArray,
    ) -> None: ...
    def toggle(self, j: int) -> None: ...
    def run(self, choices: FloatArray, picks: FloatArray) -> float: ...
    def walk(self, choices: FloatArray, tests: FloatArray) -> None: ...

def take_view(
    Phi: FloatArray,
    b: FloatArray,
    h: FloatArray,
    c: FloatArray,
    alpha: FloatArray,
    flat_intercept: bool,
    jitter_ladder: list[float],
) -> tuple[FloatArray, FloatArray, FloatArray, float, float, FloatArray, float, float, FloatArray, float]: ...
def newton_step(
    alpha: FloatArray,
    mean: FloatArray,
    Sigma: FloatArray,
    n: float,
    own_slope: FloatArray | float,
    own_curvature: FloatArray | float,
    *,
    longest: float,
    min_gamma: float,
    damping: list[float],
) -> tuple[FloatArray, float]: ...
