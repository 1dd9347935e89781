"""Models in files: skops archives that hold numbers, and names of types from a fixed list, never code.

A file is a zip archive as skops writes it, with one member more: what it is, and which version wrote it. Nothing in it
is compressed, so that no small file can become a large one.
"""

import errno
import io
import json
import os
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

from sparsebayes import __version__
from sparsebayes.estimators._callbacks import unwatched
from sparsebayes.io.allowlist import check_model
from sparsebayes.io.archive import MOST_BYTES, SCHEMA, Archive, Refused, shown
from sparsebayes.io.atomic_file import whole_file
from sparsebayes.io.printable import printable
from sparsebayes.io.sound import check_values

FORMAT = 1
"""Number of the file format; raised when older versions cannot read what is written, or this one what they wrote."""
MARK = "sparsebayes.json"
"""The member that says what the file is."""
ZIP = b"PK\x03\x04"
"""What a zip archive begins with."""
ALLOWED = (
    "A file can hold the estimators of sparsebayes, pipelines that end in one, and the steps of scikit-learn that are "
    "listed in docs/saving.md. It cannot hold functions or types of your own: give a kernel by its name, or use "
    "kernel='precomputed'; list the columns of a ColumnTransformer."
)
"""What to do about a model that cannot be stored."""


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
    data = archive.getvalue()
    try:
        names = _checked(Archive(data))
        unknown = set(skops_io.get_untrusted_types(data=data)) - names
        if unknown:
            raise Refused(f"skops does not know {', '.join(sorted(unknown))}")
    except Refused as error:
        raise ModelFileError(f"this {type(model).__name__} cannot be stored: {error}. {ALLOWED}") from error
    with whole_file(path) as file:
        file.write(data)


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
    place = printable(path)
    try:
        data = _contents(Path(path))
    except Refused as error:
        raise ModelFileError(f"{place}: {error}") from error
    try:
        archive = Archive(data)
        mark = _checked_mark(archive)
        try:
            names = _checked(archive)
        except Refused as error:
            wrote = shown(mark["versions"].get("sparsebayes"))
            message = f"it holds what sparsebayes {__version__} does not read (sparsebayes {wrote} wrote it)"
            raise Refused(f"{message}: {error}") from error
        model = skops_io.loads(data, trusted=sorted(names))
        check_values(model)
    except Refused as error:
        raise ModelFileError(f"{place}: {error}") from error
    except Exception as error:  # whatever a damaged or forged file makes of zipfile, json, skops or NumPy
        raise ModelFileError(
            f"{place} is damaged, or not a model file: {shown(error) or type(error).__name__}"
        ) from error
    return ModelFile(model, mark["versions"], mark["metadata"])


def _checked(archive: Archive) -> set[str]:
    """The names in a file, all of which may be trusted; nothing has been built yet."""
    return check_model(archive.schema(), archive)


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


def _contents(path: Path) -> bytes:
    """The bytes of a plain file of bearable size that begins like a zip archive."""
    about = path.stat()
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a model file", str(path))
    if not stat.S_ISREG(about.st_mode):
        raise Refused("it is not a regular file")
    if about.st_size > MOST_BYTES:
        raise Refused(f"it has more than {MOST_BYTES:,} bytes")
    with path.open("rb") as file:
        start = file.read(len(ZIP))
        if start != ZIP:
            raise Refused("it is not a model file: it does not begin like a zip archive")
        return start + file.read(about.st_size)


def _checked_mark(archive: Archive) -> dict[str, Any]:
    """What the file says of itself."""
    if MARK not in archive:
        raise Refused("it was not written by sparsebayes.save" + "; skops.io.load may read it" * (SCHEMA in archive))
    mark = archive.json(MARK)
    number, versions = mark["format"], mark["versions"]
    sound = type(number) is int and isinstance(versions, dict) and isinstance(mark["metadata"], dict)
    if not sound or not all(isinstance(version, str) for version in versions.values()):
        raise Refused(f"its {MARK} is damaged")
    if number != FORMAT:
        remedy = "upgrade sparsebayes" if number > FORMAT else "fit the model anew, or load it with that version"
        raise Refused(
            f"it has format {shown(number)} (sparsebayes {shown(versions['sparsebayes'])}), sparsebayes {__version__} "
            f"reads format {FORMAT}: {remedy}"
        )
    return mark
