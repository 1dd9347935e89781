from numpy.linalg import LinAlgError

from sparsebayes.core.types import BoolArray, FloatArray

Found = tuple[
    BoolArray,
    FloatArray,
    FloatArray,
    float,
    tuple[FloatArray, FloatArray, FloatArray],
    tuple[FloatArray, FloatArray, float, float],
    bool,
]

class NotPositiveDefinite(LinAlgError): ...

class Settler:
    def __init__(
        self,
        t: FloatArray,
        weight: FloatArray,
        *,
        a: float,
        least_alpha: float,
        base_intercept: float,
        flat_intercept: bool,
        settling: int,
        halvings: int,
        longest: float,
        slowest: float,
        near: float,
        longest_leap: float,
        rounding: float,
        least_curvature: float,
        least_gamma: float,
        jitter_ladder: list[float],
    ) -> None: ...
    def settle_mode(
        self, Phi: FloatArray, alpha: FloatArray, rate: FloatArray, w: FloatArray, evidence: float, tol: float
    ) -> Found: ...
    def settle_contact(
        self, Phi: FloatArray, alpha: FloatArray, rate: FloatArray, xi: FloatArray, evidence: float, tol: float
    ) -> Found: ...
    @staticmethod
    def factors(
        X: FloatArray,
        mean: FloatArray,
        scale: FloatArray,
        root_weight: FloatArray,
        Phi: FloatArray,
        b: FloatArray,
        residual: FloatArray,
        root: FloatArray,
        copy: float,
    ) -> tuple[FloatArray, FloatArray, BoolArray]: ...
