"""What the peer table counts: limits, ratios, and tables that are made of the CSV file."""

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("resource", reason="limits of time need a fork, which Windows does not have")
FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def bench(monkeypatch):
    """The modules, imported from their folder."""
    monkeypatch.syspath_prepend(FOLDER)
    import limited
    import peer_report
    import peer_table
    import rivals
    import workloads

    return SimpleNamespace(
        limited=limited, report=peer_report, table=peer_table, rivals=rivals, workloads=workloads.WORKLOADS
    )


def test_a_job_that_needs_too_long_is_stopped_and_one_that_fails_says_why(bench):
    def forever():
        while True:
            pass

    def fails():
        raise ValueError("no such width")

    start = time.process_time()
    assert bench.limited.limited(lambda: {"seconds": 1.0}, 10) == {"seconds": 1.0, "status": "ok"}
    assert bench.limited.limited(forever, 0)["status"] == "over 0 s"
    assert bench.limited.limited(fails, 10)["status"].startswith("ValueError: no such width")
    assert time.process_time() - start < 5


def test_a_method_that_failed_once_is_not_tried_again(bench, monkeypatch):
    tried = []

    def limited(job, seconds):
        tried.append(job)
        return {"status": "over 3 s"} if len(tried) == 1 else {"seconds": 1.0, "status": "ok"}

    monkeypatch.setattr(bench.table, "limited", limited)
    workload = SimpleNamespace(name="w", kind="linear", draw=lambda seed: None)
    jobs = bench.table.limited_jobs(workload, range(3), {"slow": None, "known": None, "fast": None}, 3, [
        {"method": "known", "status": "over 3 s", "seconds": np.nan}
    ])  # fmt: skip
    results = {key: job() for key, job in jobs}
    assert len(tried) == 1 + 3  # slow once, known never, fast on each data set
    assert results["linear", "w", "known", 2]["status"] == "over 3 s"
    assert results["linear", "w", "slow", 2]["status"] == "over 3 s"


def records():
    common = {"group": "linear", "design": "linear small, 100×50", "n_true": 2, "vectors": None, "status": "ok"}
    ours = [common | {"method": "averaged", "seed": s, "seconds": t, "error": 2.0, "kept": 2, "hits": 2} for s, t in
            enumerate((1.0, 9.0, 2.0))]  # fmt: skip
    theirs = [common | {"method": "LassoCV", "seed": 0, "seconds": 4.0, "error": 3.0, "kept": 5, "hits": 1}]
    failed = [common | {"method": "millipede", "seed": 0, "seconds": np.nan, "status": "over 3 s"}]
    return ours + theirs + failed


def test_ratios_are_to_our_default_and_survive_the_csv_file(bench, tmp_path):
    bench.report.write_csv(records(), tmp_path / "peers.csv")
    lines = {line["method"]: line for line in bench.report.read_csv(tmp_path / "peers.csv")}
    assert (lines["averaged"]["seconds"], lines["averaged"]["fits"]) == (2.0, 3)
    assert (lines["LassoCV"]["times_ours"], lines["LassoCV"]["error_over_ours"]) == (2.0, 1.5)
    assert lines["millipede"]["fits"] == 0
    assert lines["millipede"]["status"] == "over 3 s"
    page = tmp_path / "peers.md"
    page.write_text(f"before\n{bench.report.BEGIN}\nold\n{bench.report.END}\nafter\n")
    bench.report.publish(list(lines.values()), tmp_path / "peers.png", page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| LassoCV | 1 | 4 | 2 | 3 | 1.5 | 5 / 1 |" in text
    assert "| millipede | 0 | over 3 s |" in text
    assert "| **averaged** | 3 | 2 | 1 |" in text


def test_every_workload_has_methods_and_data_of_its_kind(bench):
    names = [workload.name for workload in bench.workloads]
    assert len(set(names)) == len(names)
    for workload in bench.workloads:
        assert workload.kind in bench.rivals.KINDS
    small = {workload.name: workload for workload in bench.workloads if "500,000" not in workload.name}
    for name in ("sinc, 100×1", "Ripley, 250×22", "4 classes, 400×100", "joint, 100×500, 5 outputs"):
        data, again, other = (small[name].draw(seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(data.X, again.X)
        np.testing.assert_array_equal(data.y, again.y)
        assert not np.array_equal(data.y, other.y)
        assert len(data.X_test) == len(data.y_test)


def test_the_published_table_has_every_workload_and_our_default_leads_it(bench):
    lines = bench.report.read_csv()
    rows = {}
    for line in lines:
        rows.setdefault(line["workload"], []).append(line)
    assert set(rows) == {workload.name for workload in bench.workloads}
    for methods in rows.values():
        assert methods[0]["method"] in bench.rivals.OURS
        assert next(line for line in methods if line["fits"])["times_ours"] == 1
        assert sum(line["fits"] > 0 for line in methods) >= 3
    page = bench.report.PAGE.read_text()
    assert bench.report.markdown(lines) in page


@pytest.mark.parametrize("kind", ["curve", "boundary", "linear", "logistic", "multi-class", "outputs", "sparse"])
def test_our_methods_and_scikit_learn_answer_small_data_of_their_kind(bench, kind):
    from contenders import PACKAGES
    from designs import Draw

    X, y = bench.table.small(kind)
    methods = {name: fit for name, fit in bench.rivals.KINDS[kind].items() if name.split(",")[0] not in PACKAGES}
    assert next(iter(methods)) in bench.rivals.OURS
    for fit in (methods[name] for name in list(methods)[:2]):
        record = bench.table.judged(fit, Draw(X, y, X, y, np.arange(1), None, 1.0))
        assert 0 <= record["error"] < (0.5 if y.dtype.kind == "i" else y.std())
        assert ("log_loss" in record) == (y.dtype.kind == "i")
