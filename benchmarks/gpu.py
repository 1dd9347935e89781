"""What a graphics card brings: passes of ARD and kernel matrices, against all cores of the same machine.

    SCIPY_ARRAY_API=1 python benchmarks/gpu.py [--small] [--device cuda]

The table has the size, the seconds of the processor and of the card (data are on the card beforehand; the copy takes
as long as the bus does), the share of the card's own speed in double precision, measured with a large product, and how
far the two answers are apart.
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import sklearn
import torch
from sklearn.base import clone

from sparsebayes import ARDRegressor, RVMRegressor, SparseLogisticRegression

REPEATS = 3


def seconds(work: Callable[[], Any], device: str, repeats: int = REPEATS) -> tuple[float, Any]:
    """Least time of a few repetitions, and the last answer; the card is waited for."""
    times, answer = [], None
    for _ in range(repeats):
        _wait(device)
        start = time.perf_counter()
        answer = work()
        _wait(device)
        times.append(time.perf_counter() - start)
    return min(times), answer


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def ceiling(device: str, n: int) -> float:
    """Multiplications and additions per second of a large product in double precision."""
    A = torch.randn(n, n, dtype=torch.float64, device=device)
    best, _ = seconds(lambda: A @ A, device, 5)
    return 2 * n**3 / best


def row(name: str, flops: float, cpu: float, card: float, speed: float, difference: float) -> None:
    share = f"{flops / card / speed:.0%}" if flops else "–"
    print(f"| {name} | {cpu:.2f} | {card:.3f} | {cpu / card:.0f} | {share} | {difference:.1e} |", flush=True)


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference, relative to the largest number."""
    return float(np.abs(a - b).max() / np.abs(b).max())


def rows_of(n: int, d: int, device: str) -> tuple[Any, Any]:
    """Data made on the card; ten features matter."""
    generator = torch.Generator(device=device).manual_seed(0)
    X = torch.randn(n, d, dtype=torch.float64, device=device, generator=generator)
    noise = torch.randn(n, dtype=torch.float64, device=device, generator=generator)
    return X, X[:, :10] @ torch.linspace(1, 0.1, 10, dtype=torch.float64, device=device) + noise


def ard(n: int, d: int, device: str, speed: float) -> None:
    """A regression, which is one product XᵀX and a search on it."""
    X, y = rows_of(n, d, device)
    with sklearn.config_context(array_api_dispatch=True):
        card, found = seconds(lambda: ARDRegressor(average=False).fit(X, y), device)
    A, b = X.cpu().numpy(), y.cpu().numpy()
    cpu, expected = seconds(lambda: ARDRegressor(average=False).fit(A, b), "cpu", 1)
    row(f"ARD {n:,}×{d:,}", n * d * d * 2, cpu, card, speed, apart(found.coef_, expected.coef_))


def logistic(n: int, d: int, device: str, speed: float) -> None:
    """Classes: a few passes over all columns, and narrow ones."""
    X, y = rows_of(n, d, device)
    labels = (y > 0).to(torch.int64)
    with sklearn.config_context(array_api_dispatch=True):
        card, found = seconds(lambda: SparseLogisticRegression(average=False).fit(X, labels), device)
    A, b = X.cpu().numpy(), labels.cpu().numpy()
    cpu, expected = seconds(lambda: SparseLogisticRegression(average=False).fit(A, b), "cpu", 1)
    row(f"logistic {n:,}×{d:,}", 0.0, cpu, card, speed, apart(found.coef_, expected.coef_))


def smooth(n: int, device: str) -> tuple[Any, Any, float]:
    """A smooth function of three inputs, and a wide kernel: neighbouring columns are nearly dependent."""
    X = rows_of(n, 10, device)[0][:, :3].contiguous()
    y = torch.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * torch.randn(n, dtype=torch.float64, device=device)
    return X, y, 0.2


def bumps(n: int, device: str) -> tuple[Any, Any, float]:
    """A sum of twenty kernels over five inputs: columns are well apart, so that the rows decide which are kept."""
    X, gamma = rows_of(n, 10, device)[0][:, :5].contiguous(), 0.5
    generator = torch.Generator(device=device).manual_seed(1)
    weights = torch.randn(20, dtype=torch.float64, device=device, generator=generator)
    f = torch.exp(-gamma * torch.cdist(X, X[:20]) ** 2) @ weights
    return X, f + 0.3 * f.std() * torch.randn(n, dtype=torch.float64, device=device, generator=generator), gamma


def kernel(problem: Callable[[int, str], Any], n: int, m: int, vectors: str, device: str, speed: float) -> None:
    """A relevance vector machine with m given candidates: kernel values and their products, then the search."""
    X, y, gamma = problem(n, device)
    A, b = X.cpu().numpy(), y.cpu().numpy()
    model = RVMRegressor(vectors=vectors, candidates=A[:m], gamma=gamma, standardize=False)
    with sklearn.config_context(array_api_dispatch=True):
        card, found = seconds(lambda: clone(model).fit(X, y), device)
    cpu, expected = seconds(lambda: clone(model).fit(A, b), "cpu", 1)
    kept = len(found.relevance_vectors_)
    # Kernel columns are nearly dependent, so that weights are not determined to many digits; predictions are.
    name = f'RVM, vectors="{vectors}", {problem.__name__}, {n:,} rows × {m:,} candidates, {kept} vectors'
    row(name, 0.0, cpu, card, speed, apart(found.predict(A[:1000]), expected.predict(A[:1000])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--small", action="store_true", help="a hundredth of the size, to see that it runs")
    options = parser.parse_args()
    device, small = options.device, options.small
    speed = ceiling(device, 512 if small else 8192)
    name = torch.cuda.get_device_name() if device.startswith("cuda") else "processor"
    print(
        f"{name}: {speed / 1e12:.1f} Tflop/s in double precision; {os.cpu_count()} cores, torch {torch.__version__}\n"
    )
    print("| task | processor, s | card, s | ratio | share of the card's speed | difference |")
    print("| --- | --- | --- | --- | --- | --- |")
    ard(10_000 if small else 1_000_000, 100 if small else 1000, device, speed)
    logistic(10_000 if small else 1_000_000, 20 if small else 100, device, speed)
    for problem, vectors in ((bumps, "sparse"), (smooth, "sparse"), (bumps, "all"), (smooth, "all")):
        kernel(problem, 2_000 if small else 50_000, 200 if small else 5_000, vectors, device, speed)


if __name__ == "__main__":
    main()
