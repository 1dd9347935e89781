"""Arguments and options that several commands have."""

from typing import Annotated

import typer

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv, .tsv, .parquet or .feather file, sqlite:///file.db#table, or a built-in data set by name.",
    ),
]
ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help="A file that `sparsebayes fit -o` has written.")]
TargetName = Annotated[str, typer.Option("--target", "-t", help="The column to predict (a built-in data set has one).")]
Task = Annotated[str, typer.Option(help="auto, regression or classification.")]
Features = Annotated[
    list[str] | None,
    typer.Option("--features", "-f", help="Columns to learn from: a name or a glob; !glob leaves out."),
]
Exclude = Annotated[list[str] | None, typer.Option("--exclude", "-x", help="Columns to leave out: a name or a glob.")]
Group = Annotated[str, typer.Option(help="A column (subject, batch) whose rows stay together in cross-validation.")]
Impute = Annotated[str, typer.Option(help="Fill missing numbers with the median or mean; otherwise they are refused.")]
Sample = Annotated[int, typer.Option(min=0, help="Draw that many rows at random first (0: use all).")]
Cv = Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")]
Seed = Annotated[int, typer.Option(min=0, help="For everything random: folds, drawn rows.")]
Json = Annotated[bool, typer.Option("--json", help="Write the results as JSON, and nothing else, to standard output.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tell how the work goes.")]
Setting = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the model: --set min_gain=0.")
]
