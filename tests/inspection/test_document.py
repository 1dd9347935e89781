"""The page on looking at a model runs from top to bottom, and says what is true."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page():
    return (DOCS / "inspection.md").read_text(encoding="utf-8")


def test_the_code_of_the_page_runs(page):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(block.replace("n_resamples=100", "n_resamples=20"), names)
    assert list(names["X"].columns[names["model"].active_]) == ["sex", "bmi", "bp", "s5"]
    assert list(names["X"].columns[names["model"].model_.active_]) == ["sex", "bmi", "bp", "s3", "s5"]
    assert "At least one of these 2" in names["inclusion"].text()
    assert set(names["relevance"].names[:2]) == {"bmi", "s5"}
    assert set(names["selector"].get_feature_names_out()) == {"bmi", "bp", "s5"}
    assert names["selector"].expected_false_selections() == pytest.approx(4.8, abs=1.0)  # over 20 halves, not 100
    assert names["coverage"].inside.all()
    assert (len(names["band"].x_vectors), len(names["regions"].vectors)) == (6, 6)


def test_every_figure_of_the_page_is_there_and_small(page):
    figures = re.findall(r"!\[.+?\]\((.+?)\)", page)
    assert len(figures) == 9
    for figure in figures:
        assert 0 < (DOCS / figure).stat().st_size < 100_000
