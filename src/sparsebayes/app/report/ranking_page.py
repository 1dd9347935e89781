"""The report of a comparison of models."""

import os

from sparsebayes import __version__
from sparsebayes.app.facts import comparison_of
from sparsebayes.app.load_data import Problem
from sparsebayes.app.report.comparison import compared
from sparsebayes.app.report.page import rendered
from sparsebayes.app.report.section import Section
from sparsebayes.app.report.sections import origin_rows
from sparsebayes.app.run_study import Ranking
from sparsebayes.app.words import count, error_text, name
from sparsebayes.io.atomic_file import whole_file


def write_ranking(ranking: Ranking, problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write the report of a comparison. The file appears whole or not at all."""
    data = ranking_html(ranking, problem).encode()
    with whole_file(path) as file:
        file.write(data)


def ranking_html(ranking: Ranking, problem: Problem) -> str:
    """The report as text."""
    n_folds, classes = len(problem.folds), bool(problem.target.classes)
    first, *rest = ranking.scores
    others = [comparison_of(score, n_folds) for score in rest]
    sections = [compared(first, others, count(n_folds, "fold"), classes)]
    if ranking.left_out:
        sections.append(
            Section("left-out", "Models that were left out", [name(each, 200) for each in ranking.left_out])
        )
    as_good = sum(other.verdict == "unclear" for other in others)
    what = "misclassifies the fewest held-out rows" if classes else "has the smallest error on held-out rows"
    lede = (
        f"{name(first.title)} {what}: {error_text(first.error, first.error_se, percent=classes)}. "
        f"{as_good} of {count(len(others), 'other model')} {'is' if as_good == 1 else 'are'} not clearly worse."
    )
    provenance = [
        ("Data", name(problem.source, 200)),
        ("Target", name(problem.target_name)),
        ("Rows", f"{len(problem.y):,}"),
        ("Features", f"{problem.X.shape[1]:,}"),
        ("Cross-validation", f"{count(n_folds, 'fold')}, seed {problem.seed}"),
        ("Version", f"sparsebayes {__version__}"),
        *origin_rows(ranking.origin),
    ]
    return rendered(
        target=name(problem.target_name),
        source=name(problem.source, 200),
        lede=lede,
        answers=[],
        sections=sections,
        provenance=provenance,
        command=name(ranking.origin.command, 1000) if ranking.origin else "",
        warnings=[name(each, 300) for each in problem.warnings],
        version=__version__,
        n_rows=len(problem.y),
    )
