"""Which packages a piece of code needs that are not installed here."""

import ast
from importlib.util import find_spec

import pytest
from sklearn.utils.validation import _get_feature_names


def skip_without_packages(code):
    """Skip the test if the code imports a package that is not installed."""
    missing = sorted({name for name in _imported(code) if find_spec(name) is None})
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")


def skip_without_names(frame):
    """Skip the test if scikit-learn does not see the names of the frame's columns.

    Before version 1.9 it asks for `__dataframe__`, which polars 2 does not have.
    """
    if _get_feature_names(frame) is None:
        pytest.skip(f"this version of scikit-learn does not see the names of {type(frame).__module__} columns")


def _imported(code):
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]
