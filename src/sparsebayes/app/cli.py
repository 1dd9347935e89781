"""The `sparsebayes` command. Heavy packages are imported in the commands that need them, so that help is fast."""

import sys
from typing import Annotated, Any

import typer

from sparsebayes import __version__
from sparsebayes.app.errors import DataError, UsageError
from sparsebayes.app.exit_codes import (
    check_writable,
    release_stdout,
    report_interrupt,
    report_misuse,
    reserve_stdout,
    watch_ctrl_c,
    with_exit_codes,
)
from sparsebayes.app.options import (
    Cv,
    Data,
    Exclude,
    Features,
    Group,
    Impute,
    Jobs,
    Json,
    Missing,
    ModelPath,
    NoBaselines,
    Positive,
    Sample,
    Seed,
    Setting,
    TargetName,
    Task,
    Verbose,
)
from sparsebayes.io.printable import printable

NOT_CONVERGED = 4
"""Exit code of a fit that did not converge; its result is written."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"sparsebayes {__version__}")
        raise typer.Exit


@app.callback()
def sparsebayes(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Sparse Bayesian learning: fit, test and explain models of a table.

    \b
    sparsebayes fit diabetes --report report.html        a built-in data set
    sparsebayes fit patients.csv --target outcome -o model.skops
    sparsebayes predict model.skops new.csv --interval 0.9 -o out.parquet
    sparsebayes compare patients.csv --target outcome

    Results go to standard output, everything else to standard error. Exit codes: 0 success, 2 wrong usage, 3 wrong
    data, 4 not converged (a result is still written), 130 interrupted, 1 other errors.
    """


def _choice(value: str, option: str, choices: tuple[str, ...]) -> None:
    if value and value not in choices:
        raise UsageError(f"unknown {option} {value}: choose {', '.join(choices)}")


def _processes(jobs: int) -> int:
    """The number of processes that `--jobs` asks for."""
    from joblib import cpu_count

    return jobs or int(cpu_count())


def _problem(request: Any) -> Any:
    """Read and encode the data, and print notes about them."""
    from sparsebayes.app.console import tell
    from sparsebayes.app.load_data import prepared
    from sparsebayes.app.targets import TASKS

    _choice(request.task, "--task", TASKS)
    _choice(request.impute, "--impute", ("median", "mean"))
    problem = prepared(request)
    for note in problem.notes:
        tell(note)
    return problem


def _folder() -> str:
    """A folder for files of this command, which goes when the command ends."""
    import atexit
    import tempfile

    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return folder.name


# --- commands ---


@app.command()
@with_exit_codes
def fit(
    data: Data,
    target: TargetName = "",
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", help="auto, or one of ard robust noisy poisson negbin slr vb rvm bls pcvm pfcvm drvm."
        ),
    ] = "auto",
    task: Task = "auto",
    features: Features = None,
    exclude: Exclude = None,
    group: Group = "",
    impute: Impute = "",
    missing: Missing = None,
    sample: Sample = 0,
    cv: Cv = 5,
    positive: Positive = "",
    setting: Setting = None,
    no_baselines: NoBaselines = False,
    jobs: Jobs = 0,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Write the fitted model to a file (model.skops).")
    ] = None,
    report: Annotated[str | None, typer.Option(help="Write a report as one HTML file.")] = None,
    dask: Annotated[str, typer.Option(metavar="ADDRESS", help="Fit a Parquet file on this Dask cluster.")] = "",
    as_json: Json = False,
    seed: Seed = 0,
    verbose: Verbose = False,
) -> None:
    """Fit a model, test it on held-out rows, and show what it keeps.

    \b
    sparsebayes fit diabetes --report report.html
    sparsebayes fit patients.csv --target outcome -o model.skops
    sparsebayes fit spectra.parquet --target protein --features 'w*' --features '!w999'
    sparsebayes fit sqlite:///study.db#visits --target relapse --group subject --exclude 'id*'
    sparsebayes fit ratings.csv --target stars --task regression --impute median
    sparsebayes fit sinc --model rvm --set gamma=0.1 --json

    \b
    Models for numbers:  ard   linear, few features        rvm   kernel, few rows
                         drvm  kernel, few rows and features   bls   kernel, noisy data
    Models for counts:   poisson  linear in the log rate   negbin  the same, for counts that vary more
    Models for classes:  slr   linear, few features        rvm, pcvm   kernel, few rows
                         vb    linear, all features        pfcvm       kernel, few rows and features

    `auto` takes the linear model, or a kernel model (rvm, drvm) if it predicts held-out rows clearly better. The result
    is compared with a linear and a non-linear baseline. Text and yes/no columns become columns of zeros and ones
    (colour=red).

    A Parquet file or folder that would take a quarter of the memory is read block by block, by a linear model. --sample
    fits a sample of it instead.
    """
    check_writable(output, "-o")
    check_writable(report, "--report", (".html", ".htm"))
    from sparsebayes.app.console import progress
    from sparsebayes.app.load_data import Request
    from sparsebayes.app.models import OURS, settings
    from sparsebayes.app.outputs import Outputs, show_study
    from sparsebayes.app.run_study import Settings, studied

    _choice(model, "--model", ("auto", *OURS))
    given = settings(setting or [])
    chosen = features or (), exclude or ()
    if data.endswith(".parquet") or dask or "." not in data:
        from sparsebayes.app.streaming import Wish, drawn, fit_by_passes, refuse, table_to_stream

        if table := table_to_stream(data, dask, sample):
            refuse(group=group, impute=impute, missing=missing, report=report)
            if not fit_by_passes(table, Wish(target, model, task, *chosen, dask, output, as_json, given)):
                raise typer.Exit(NOT_CONVERGED)
            return
        data = drawn(data, sample, seed, _folder())
    problem = _problem(Request(data, target, task, *chosen, group, impute, missing or (), sample, cv, seed, positive))
    with progress(verbose, live=not as_json) as tick:
        made = Settings(impute, given, tick, int(not as_json), _processes(jobs), not no_baselines)
        study = studied(problem, model, made)
    show_study(study, problem.recipe, Outputs(output, report, as_json))
    if not study.pipeline[-1].converged_:
        raise typer.Exit(NOT_CONVERGED)


@app.command()
@with_exit_codes
def predict(
    model: ModelPath,
    data: Data,
    interval: Annotated[
        float | None, typer.Option(help="Also write prediction intervals with this coverage, such as 0.9.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Columns of DATA to copy to the output: a name or a glob.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", help="A .csv, .tsv, .parquet or .feather file; default: CSV on standard output."
        ),
    ] = None,
    missing: Missing = None,
    verbose: Verbose = False,
) -> None:
    """Predict the rows of a table.

    \b
    sparsebayes predict model.skops new.csv
    sparsebayes predict model.skops new.csv --interval 0.9 --keep id -o out.parquet

    Columns are found by name, in any order; further columns are ignored. For numbers the output has `prediction` and
    `std` (and `lower`, `upper`), for classes `prediction` and a `probability=…` of each class.
    """
    if interval is not None and not 0 < interval < 1:
        raise UsageError(f"--interval {interval:g} must be between 0 and 1")
    from sparsebayes.app.console import progress, tell
    from sparsebayes.app.modelfile import open_model
    from sparsebayes.app.predicting import WRITERS, Wanted, predictions, print_table, write_table
    from sparsebayes.app.tables import open_table

    check_writable(output, "-o", tuple(WRITERS))
    stored = open_model(model)
    table = open_table(data)
    with progress(verbose, live=True) as tick:
        found = predictions(stored, table, Wanted(interval, keep or (), missing or ()), tick)
    if output is None:
        print_table(found)
        return
    write_table(found, output)
    tell(f"{len(found):,} predictions written to {output}")


@app.command()
@with_exit_codes
def compare(
    data: Data,
    target: TargetName = "",
    only: Annotated[
        list[str] | None, typer.Option(help="Compare only this model (see below). May be repeated.")
    ] = None,
    task: Task = "auto",
    features: Features = None,
    exclude: Exclude = None,
    group: Group = "",
    impute: Impute = "",
    missing: Missing = None,
    sample: Sample = 0,
    cv: Cv = 5,
    jobs: Jobs = 0,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Also write the table to a file.")] = None,
    report: Annotated[str | None, typer.Option(help="Write the comparison as one HTML file.")] = None,
    as_json: Json = False,
    seed: Seed = 0,
    verbose: Verbose = False,
) -> None:
    """Rank all suitable models and baselines by cross-validation.

    All models use the same folds.

    \b
    sparsebayes compare diabetes
    sparsebayes compare patients.csv --target outcome --group subject --cv 10
    sparsebayes compare friedman1 --only ard --only drvm --only gp -o table.csv --report table.html

    \b
    Models for numbers:  ard robust noisy rvm bls drvm; baselines ridge lasso svm gp boosting mean
    Models for counts:   poisson negbin, beside those for numbers
    Models for classes:  slr vb rvm pcvm pfcvm; baselines l1 l2 svm gp boosting majority

    The best model comes first. Differences from it are paired over the folds; their standard errors account for the
    overlap of the training sets. A difference that is not larger than its standard error is not significant. The log
    score is the mean negative log probability (density) of the true values: smaller is better.
    """
    from sparsebayes.app.console import progress
    from sparsebayes.app.load_data import Request
    from sparsebayes.app.outputs import Outputs, show_ranking
    from sparsebayes.app.predicting import WRITERS
    from sparsebayes.app.run_study import Settings, compared

    check_writable(output, "-o", tuple(WRITERS))
    check_writable(report, "--report", (".html", ".htm"))
    chosen = features or (), exclude or ()
    problem = _problem(Request(data, target, task, *chosen, group, impute, missing or (), sample, cv, seed))
    with progress(verbose, live=not as_json) as tick:
        ranking = compared(problem, only or (), Settings(impute, tick=tick, jobs=_processes(jobs)))
    show_ranking(ranking, problem, Outputs(output, report, as_json))


@app.command()
@with_exit_codes
def inspect(model: ModelPath, as_json: Json = False) -> None:
    """Show what a fitted model keeps, and how its search ended.

    \b
    sparsebayes inspect model.skops
    sparsebayes inspect model.skops --json
    """
    from sparsebayes.app.console import out, print_json
    from sparsebayes.app.json_output import stored_json
    from sparsebayes.app.modelfile import check_shown, open_model
    from sparsebayes.app.terminal import print_stored

    stored = open_model(model)
    check_shown(stored, model)
    if as_json:
        print_json(stored_json(stored))
    else:
        print_stored(out(), stored)


@app.command()
@with_exit_codes
def export(
    model: ModelPath,
    output: Annotated[str, typer.Argument(metavar="FILE", help="The file to write: model.onnx.")],
) -> None:
    """Export a model to ONNX.

    \b
    sparsebayes export model.skops model.onnx

    Programs in other languages can run the file without Python. The input "X" is a matrix of doubles whose columns are
    listed on standard output; categories are columns of zeros and ones (colour=red). The outputs are "mean" and "std",
    or "label" and "probabilities".
    """
    check_writable(output, "FILE", (".onnx",))
    from sparsebayes.app.console import tell
    from sparsebayes.app.modelfile import open_model

    stored = open_model(model)
    try:
        from sparsebayes.io.onnx.export import to_onnx

        to_onnx(stored.pipeline, output)
    except ImportError as error:
        raise UsageError(f"{error}: pip install 'sparsebayes[onnx]'") from error
    except ValueError as error:
        raise DataError(str(error)) from error
    tell(f"model written to {output}; the columns of X, in this order, are:")
    print("\n".join(map(printable, stored.recipe.features)))


@app.command()
@with_exit_codes
def datasets(as_json: Json = False) -> None:
    """List the built-in data sets.

    \b
    sparsebayes datasets
    sparsebayes fit friedman1 --model drvm

    Their names can be given as DATA.
    """
    from sparsebayes.app.console import out, print_json
    from sparsebayes.app.datasets import DATASETS
    from sparsebayes.app.terminal import print_datasets

    if as_json:
        keys = ("target", "task", "n_rows", "n_features", "about")
        print_json({name: {key: getattr(known, key) for key in keys} for name, known in DATASETS.items()})
    else:
        print_datasets(out(), DATASETS)


def run() -> None:
    """Entry point of the installed command."""
    from sparsebayes.app.console import escape_warnings

    reserve_stdout()
    escape_warnings()
    watch_ctrl_c()
    try:
        code = app(prog_name="sparsebayes", standalone_mode=False)
    except KeyboardInterrupt:
        sys.exit(report_interrupt())
    except Exception as error:
        if not hasattr(error, "show"):  # what typer raises knows how to show itself
            raise
        sys.exit(report_misuse(error))
    finally:
        release_stdout()
    sys.exit(code or 0)
