"""Arguments and options of several commands."""

from typing import Annotated

import typer

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv, .xlsx, .jsonl, .parquet or .feather, also compressed; - for standard input; "
        "sqlite:///file.db#table; or a built-in data set by name.",
    ),
]
ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help="A model file written by `sparsebayes fit -o`.")]
TargetName = Annotated[
    str, typer.Option("--target", "-t", help="The column to predict; built-in data sets have a default.")
]
Task = Annotated[str, typer.Option(help="auto, regression or classification.")]
Features = Annotated[
    list[str] | None,
    typer.Option("--features", "-f", help="Feature columns: a name or a glob; !glob excludes. May be repeated."),
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", "-x", help="Columns to exclude: a name or a glob. May be repeated.")
]
Group = Annotated[str, typer.Option(help="A column, such as subject; rows with the same value stay in one fold.")]
Impute = Annotated[str, typer.Option(help="Fill missing numbers with the median or mean; otherwise they are an error.")]
Missing = Annotated[
    list[str] | None,
    typer.Option(help="A word that marks missing values, such as -. Empty cells, NA, NaN and ? always do."),
]
Sample = Annotated[int, typer.Option(min=0, help="Use a random sample of this many rows (0: all).")]
Cv = Annotated[int, typer.Option(min=2, help="Number of cross-validation folds.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed of the folds and the sample.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print a line for each fold.")]
Positive = Annotated[
    str, typer.Option(help="The class of interest, which rates of found rows are about; default: the rarest.")
]
Jobs = Annotated[int, typer.Option(min=0, help="Processes for folds that take long (0: one for each core).")]
NoBaselines = Annotated[
    bool, typer.Option("--no-baselines", help="Do not compare the model with baselines, which saves time.")
]
Setting = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the model: --set min_gain=0.")
]
