"""Files that are written whole or not at all."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write bytes to, which takes the place of `path` when all of them are on the disk, or leaves no trace.

    Whatever goes wrong (a full disk, an exception or Ctrl-C in the block), a file that was there before stays as it
    was. The bytes are collected under another name in the same folder, because only there a rename is one step.
    """
    target = Path(os.path.realpath(path))  # through links: the file behind a link is replaced, not the link
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to write to", str(target.parent))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "only a plain file can be written whole", str(target))
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name outlast a crash, where the system lets folders be synchronised (Windows does not)."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
