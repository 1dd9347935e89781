from numpy.linalg import LinAlgError

from sparsebayes.engine.candidates import Standing
from sparsebayes.engine.problem import GaussianProblem

class NotPositiveDefinite(LinAlgError): ...

class Search:
    def __init__(
        self,
        problem: GaussianProblem,
        active: list[int],
        alpha: list[float],
        noise: float,
        *,
        copy: float,
        refresh: int,
        eager: int,
        settle: int,
        near: int,
        prefetch: int,
        noise_floor: float,
        jitter_ladder: list[float],
    ) -> None: ...
    def begin(self, tol: float, hold_noise: bool, max_additions: int, fresh: float, joint: bool) -> None: ...
    def steps(self, at_most: int) -> list[tuple[float, float, int, float, str]]: ...
    def standing(self) -> Standing: ...
