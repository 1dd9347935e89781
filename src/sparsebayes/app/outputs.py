"""Print results and write the files that were asked for."""

from dataclasses import dataclass

import polars as pl

from sparsebayes.app.columns import Recipe
from sparsebayes.app.console import out, print_json, tell
from sparsebayes.app.facts import facts_of
from sparsebayes.app.json_output import ranking_json, study_json
from sparsebayes.app.load_data import Problem
from sparsebayes.app.modelfile import save_study
from sparsebayes.app.predicting import write_table
from sparsebayes.app.run_study import Ranking
from sparsebayes.app.study import Study
from sparsebayes.app.terminal import print_scores, print_study


@dataclass(frozen=True)
class Outputs:
    """Where results go."""

    file: str | None
    """The model, or the table of scores."""
    report: str | None
    as_json: bool


def show_study(study: Study, recipe: Recipe, outputs: Outputs) -> None:
    """Write the files of a study and print its facts, which are computed once for all outputs."""
    for message in study.warnings:
        tell(f"warning: {message}")
    facts = facts_of(study)
    if outputs.file is not None:
        save_study(study, recipe, outputs.file)
        tell(f"model written to {outputs.file}")
    if outputs.report is not None:
        from sparsebayes.app.report.page import write

        write(facts, outputs.report)
        tell(f"report written to {outputs.report}")
    if outputs.as_json:
        print_json(study_json(facts))
    else:
        print_study(out(), facts)


def show_ranking(ranking: Ranking, problem: Problem, outputs: Outputs) -> None:
    """Write the files of a comparison and print it."""
    for note in ranking.left_out:
        tell(note)
    if outputs.file is not None:
        write_table(pl.DataFrame([vars(score) for score in ranking.scores]), outputs.file)
        tell(f"table written to {outputs.file}")
    if outputs.report is not None:
        from sparsebayes.app.report.ranking_page import write_ranking

        write_ranking(ranking, problem, outputs.report)
        tell(f"report written to {outputs.report}")
    if outputs.as_json:
        print_json(ranking_json(ranking, problem))
    else:
        print_scores(out(), ranking.scores, problem.target.task)
