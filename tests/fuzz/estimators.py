"""A campaign against the estimators: any parameters on any data, by the thousand.

    python tests/fuzz/estimators.py --seconds 3600

Each case is a fit drawn by hypothesis: shapes, ranks, ties, constant and extreme columns, sizes of 1e±300, dtypes,
weights, every parameter's range, precomputed and callable kernels, `partial_fit`, `StabilitySelector`. A fit must be
refused with a ValueError, or predict finite numbers without a numerical warning, in less than a minute.

Failures are printed once for each estimator and message, with the case. `--seed` makes other cases.
"""

import argparse
import collections
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parent))
from cases import Case, cases, outcome

BATCH = 200
"""Cases of one run of hypothesis."""


def campaign(seconds: float, first: int) -> tuple[collections.Counter, dict[str, tuple[int, Case]]]:
    """Run cases until the time is over; counts of outcomes, and each kind of failure with its first case."""
    counts: collections.Counter = collections.Counter()
    failures: dict[str, tuple[int, Case]] = {}
    end = time.monotonic() + seconds

    def once(case: Case) -> None:
        if time.monotonic() > end:
            return
        try:
            counts[outcome(case)] += 1
        except Exception as error:
            counts["failed"] += 1
            kind = f"{case.estimator}: {type(error).__name__}: {str(error)[:120]}"
            n, known = failures.get(kind, (0, case))
            failures[kind] = n + 1, known
            if not n:
                print(kind, case, sep="\n    ", flush=True)

    batch = 0
    while time.monotonic() < end:
        options = settings(
            max_examples=BATCH,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        seed(first * 1_000_003 + batch)(options(given(cases())(once)))()
        batch += 1
    return counts, failures


def main() -> int:
    """Run the campaign; the exit code is 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    counts, failures = campaign(arguments.seconds, arguments.seed)
    print(f"{counts.total():,} cases:", ", ".join(f"{n:,} {name}" for name, n in sorted(counts.items())))
    for kind, (n, _) in sorted(failures.items(), key=lambda item: -item[1][0]):
        print(f"{n:6d}  {kind}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
