"""What the benchmarks of model averaging count: their tables are the evidence, so the sums must be right."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def bench(monkeypatch):
    """The modules, imported from their folder."""
    monkeypatch.syspath_prepend(FOLDER)
    import averaging
    import averaging_tables
    import records

    return SimpleNamespace(averaging=averaging, tables=averaging_tables, records=records)


def record(design, method, seed, rmse, **others):
    return {"group": "designs", "design": design, "method": method, "seed": seed, "rmse": rmse, "noise": 1.0} | others


def test_a_run_continues_where_its_file_ends(bench, tmp_path):
    path, done = tmp_path / "results.jsonl", []

    def jobs(n_seeds):
        for seed in range(n_seeds):
            yield ("designs", "d", "m", seed), lambda seed=seed: done.append(seed) or {"seconds": 0.0, "rmse": 1.0}

    bench.records.extend(path, jobs(2))
    bench.records.extend(path, jobs(3))
    assert done == [0, 1, 2]
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [0, 1, 2]


def test_the_best_rival_is_chosen_by_its_mean_and_compared_on_common_seeds(bench):
    fits = [record("d", "LassoCV", seed, error) for seed, error in enumerate((1.0, 2.0))]
    fits += [record("d", "RidgeCV", seed, error) for seed, error in enumerate((0.9, 3.0))]
    fits += [record("d", "averaged", 1, 2.2)]  # the single model must not count as a rival, however good it is
    fits += [record("d", "single model", seed, 0.1) for seed in range(2)]
    best, error, ratios = bench.tables.excess(fits)
    assert (best, error) == ("LassoCV", 1.5)
    assert ratios["averaged"][0] == pytest.approx(2.2 / 2.0)
    assert ratios["RidgeCV"][0] == pytest.approx(3.9 / 3.0)


def test_bins_count_features_probabilities_and_hits(bench):
    counted = np.array(bench.averaging.bins(np.array([0.0, 0.005, 0.25, 0.92, 1.0]), np.array([2, 4])))
    edges = bench.tables.EDGES
    assert len(counted) == len(edges) - 1
    np.testing.assert_allclose(counted.sum(axis=0), [5, 2.175, 2])
    np.testing.assert_allclose(counted[0], [2, 0.005, 0])
    np.testing.assert_allclose(counted[np.searchsorted(edges, 0.25) - 1], [1, 0.25, 1])
    np.testing.assert_allclose(counted[-1], [1, 1.0, 1])  # a probability of exactly 1 belongs to the last bin


def test_the_judge_of_an_answer_that_knows_the_truth(bench):
    from contenders import Answer
    from designs import Design

    data = Design("independent").draw(0)
    exact = np.column_stack([data.weights, data.weights])
    exact[data.true[0]] += 1.0
    probability = np.isin(np.arange(200), data.true).astype(float)
    wide = [SimpleNamespace(features=data.true[:2], probability=0.9, purity=0.5)]
    false = [SimpleNamespace(features=np.setdiff1d(np.arange(200), data.true)[:3], probability=0.9, purity=0.5)]
    answer = Answer(
        lambda Z: Z @ data.weights,
        kept=np.append(data.true, np.setdiff1d(np.arange(200), data.true)[0]),
        interval=lambda Z: np.tile([-np.inf, np.median(data.y_test)], (len(Z), 1)),
        weight_interval=lambda: exact,
        probability=probability,
        sets=wide + false,
    )
    result = bench.averaging.judged(lambda X, y: answer, data)
    assert result["rmse"] == pytest.approx(data.noise)
    assert (result["kept"], result["hits"], result["n_true"]) == (9, 8, 8)
    assert result["cover"] == pytest.approx(0.5)
    assert result["cover_weights"] == pytest.approx(199 / 200)
    assert result["cover_true"] == pytest.approx(7 / 8)
    assert [held for *_, held in result["sets"]] == [True, False]
    assert json.loads(json.dumps(result))["bins"][-1] == [8, 8, 8]


def test_tables_are_made_of_whatever_there_is(bench):
    assert bench.tables.report([]) == ""
    only_rival = [record("d", "LassoCV", 0, 1.0, seconds=0.1, kept=3, hits=2, n_true=2)]
    text = bench.tables.report(only_rival)
    assert "| LassoCV | 1 | +0.0 |" in text
    assert "3.0 / 2.0 | 0.667 | 1.00" in text


def test_a_method_without_constant_columns_names_features_as_the_data_do(bench):
    from contenders import Answer, without_constants

    X = np.column_stack([np.ones(5), np.arange(5.0), np.ones(5), np.arange(5.0) ** 2])

    def second_of_two(X, y):
        assert X.shape == (5, 2)
        return Answer(lambda Z: Z[:, 1], kept=np.array([1]))

    answer = without_constants(second_of_two)(X, np.zeros(5))
    np.testing.assert_array_equal(answer.kept, [3])
    np.testing.assert_array_equal(answer.predict(X), X[:, 3])
