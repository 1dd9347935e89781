"""Models in files: skops archives that hold numbers, and names of types from a fixed list, never code.

A file is a zip archive as skops writes it, with one member more: what it is, and which version wrote it. Nothing in it
is compressed, so that no small file can become a large one.
"""

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

from sparsebayes import __version__
from sparsebayes.app.files import whole_file
from sparsebayes.app.trust import refusals, trusted_names
from sparsebayes.estimators._callbacks import unwatched

FORMAT = 1
"""Number of the file format; raised when older versions cannot read what is written, or this one what they wrote."""
MARK = "sparsebayes.json"
"""The member that says what the file is."""
SCHEMA = "schema.json"
"""The member in which skops describes the object."""


class ModelFileError(ValueError):
    """A model that cannot be stored, or a file that is no sound model file of a version that is understood."""


class ModelFile(NamedTuple):
    """What a file holds."""

    model: Any
    versions: dict[str, str]
    """Versions of sparsebayes and of the packages beneath it when the file was written."""
    metadata: dict[str, Any]


def save(model: Any, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None) -> None:
    """Store a model, or a scikit-learn pipeline around one, so that `load` gives it back to the bit.

    The file is written whole or not at all. It holds data only: a model with a function of your own (a callable kernel)
    is refused. Callbacks are not stored.

    Parameters
    ----------
    model : estimator
        Fitted or not.
    path : str or path
        By convention it ends in ".skops".
    metadata : dict, optional
        What else to keep, as far as JSON can say it.
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"model must be an estimator, not {type(model).__name__}")
    skops_io = _skops_io()
    mark = _mark({} if metadata is None else dict(metadata))
    try:
        archive = io.BytesIO(skops_io.dumps(unwatched(model), compression=zipfile.ZIP_STORED))
    except Exception as error:
        raise ModelFileError(
            f"this {type(model).__name__} cannot be stored ({error}): what it holds and what it was given must be "
            "numbers, text, arrays, lists, dicts or estimators"
        ) from error
    with zipfile.ZipFile(archive, "a") as members:
        members.writestr(MARK, mark)
        refused = refusals(json.loads(members.read(SCHEMA)))
    refused = refused or sorted(set(skops_io.get_untrusted_types(data=archive.getvalue())) - set(trusted_names()))
    if refused:
        raise ModelFileError(
            f"this {type(model).__name__} cannot be stored: it holds {'; '.join(refused)}. Types of sparsebayes, "
            "scikit-learn and NumPy can be stored, functions and types of your own cannot: give a kernel by its name, "
            "or use kernel='precomputed'."
        )
    with whole_file(path) as file:
        file.write(archive.getbuffer())


def load(path: str | os.PathLike[str]) -> Any:
    """The model of a file that `save` has written. Nothing in the file is ever run.

    Raises
    ------
    ModelFileError
        If the file is damaged, is something else, or was written by a version that this one does not understand.
    """
    return read(path).model


def read(path: str | os.PathLike[str]) -> ModelFile:
    """The same with what else the file holds."""
    skops_io = _skops_io()
    data = _archive(Path(path))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as members:
            mark = _checked_mark(members, len(data))
            refused = refusals(json.loads(members.read(SCHEMA)))
        if refused:
            raise ModelFileError(
                f"it holds what a model file of sparsebayes {__version__} does not: {'; '.join(refused)} (it says that "
                f"sparsebayes {mark['versions']['sparsebayes']} wrote it)"
            )
        model = skops_io.loads(data, trusted=trusted_names())
        if not isinstance(model, BaseEstimator):
            raise ModelFileError(f"it holds no model but a {type(model).__name__}")
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except Exception as error:  # whatever a damaged or forged file makes of zipfile, json, skops or NumPy
        raise ModelFileError(f"{path} is damaged or no model file: {error or type(error).__name__}") from error
    return ModelFile(model, mark["versions"], mark["metadata"])


def _skops_io() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("models are stored with skops: pip install 'sparsebayes[app]'") from error
    return skops.io


def _mark(metadata: dict[str, Any]) -> str:
    """The member that says what the file is, and what the caller wants to keep with the model."""
    packages = {"sparsebayes": __version__, "scikit-learn": sklearn.__version__}
    packages |= {"numpy": np.__version__, "scipy": scipy.__version__}
    try:
        return json.dumps({"format": FORMAT, "versions": packages, "metadata": metadata}, indent=2)
    except (TypeError, ValueError) as error:
        raise TypeError(f"metadata must be made of what JSON knows (text, numbers, lists, dicts): {error}") from error


def _archive(path: Path) -> bytes:
    """The bytes of a zip archive; of anything else not more than its beginning."""
    with path.open("rb") as file:
        start = file.read(4)
        if start != b"PK\x03\x04":
            raise ModelFileError(f"{path} is no model file: it does not begin like a zip archive")
        return start + file.read()


def _checked_mark(members: zipfile.ZipFile, size: int) -> dict[str, Any]:
    """What the file says of itself, after a look at how much there is to unpack."""
    infos = members.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos) or sum(i.file_size for i in infos) > size:
        raise ModelFileError("its members are compressed or overlap, which sparsebayes.save never does")
    if MARK not in members.namelist():
        raise ModelFileError("it was not written by sparsebayes.save" + _by_skops(members))
    mark = json.loads(members.read(MARK))
    number, versions = mark["format"], mark["versions"]
    if not isinstance(number, int) or not isinstance(versions, dict) or not isinstance(mark["metadata"], dict):
        raise ModelFileError(f"its {MARK} is damaged")
    if number != FORMAT:
        remedy = "upgrade sparsebayes" if number > FORMAT else "fit the model anew, or load it with that version"
        raise ModelFileError(
            f"it has format {number} (sparsebayes {versions['sparsebayes']}), sparsebayes {__version__} reads format "
            f"{FORMAT}: {remedy}"
        )
    return mark


def _by_skops(members: zipfile.ZipFile) -> str:
    return "; skops.io.load may read it" if SCHEMA in members.namelist() else ""
