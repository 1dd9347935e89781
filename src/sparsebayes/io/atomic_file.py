"""Files that are written whole or not at all."""

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":

    def _lock(file: BinaryIO, wait: bool) -> None:
        """Nothing: on Windows the age of a file decides."""

else:
    import fcntl

    def _lock(file: BinaryIO, wait: bool) -> None:
        """Lock a file until it is closed or the process ends; without `wait`, fail if another process holds it."""
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


WINDOWS = sys.platform == "win32"
PART = re.compile(r"\.sparsebayes-[0-9a-f]{16}\.part")
"""Names under which bytes are collected; nobody else gives such names."""
ABANDONED = 3600
"""Seconds without a write after which such a file is abandoned where there are no locks (Windows, network folders)."""


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write bytes to, which takes the place of `path` when all of them are on the disk, or leaves no trace.

    Whatever goes wrong (a full disk, an exception or Ctrl-C in the block), a file that was there before stays as it
    was. The bytes are collected under another name in the same folder, because only there a rename is one step. A
    process that is killed leaves that file behind; the next one that writes to the folder removes it.
    """
    if leads_to_itself(path):
        raise OSError(errno.ELOOP, "the link leads to itself", os.fspath(path))
    target = Path(os.path.realpath(path))  # through links: the file behind a link is replaced, not the link
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder to write to", str(target.parent))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "only a plain file can be written whole", str(target))
    _remove_abandoned(target.parent)
    part, file = _new_part(target.parent)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not WINDOWS:  # while it is locked; Windows renames no file that is open
                _put_in_place(part, target)
        if WINDOWS:
            _put_in_place(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _put_in_place(part: Path, target: Path) -> None:
    if target.exists():
        shutil.copymode(target, part)
    os.replace(part, target)


def leads_to_itself(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a link that ends at no file however far it is followed."""
    return os.path.islink(os.path.realpath(path))


def _new_part(folder: Path) -> tuple[Path, BinaryIO]:
    """A new file, locked as long as this process writes to it."""
    while True:
        part = folder / f".sparsebayes-{secrets.token_hex(8)}.part"
        file = part.open("xb")
        with suppress(OSError):  # a folder without locks: then the age decides
            _lock(file, wait=True)
        if part.exists():  # nobody took it for abandoned before it was locked
            return part, file
        file.close()


def _remove_abandoned(folder: Path) -> None:
    """Remove what processes that are gone left behind. Failures are of no concern: the file may be someone else's."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if PART.fullmatch(name):
                with suppress(OSError):
                    _remove_if_abandoned(folder / name)


def _remove_if_abandoned(part: Path) -> None:
    """A process that writes holds a lock, which ends with the process. Where there are no locks, the age decides."""
    about = part.lstat()
    if not stat.S_ISREG(about.st_mode):
        return
    old = time.time() - about.st_mtime > ABANDONED
    if WINDOWS:
        if old:
            part.unlink()
        return
    with part.open("rb") as file:
        try:
            _lock(file, wait=False)
        except OSError as error:
            if isinstance(error, BlockingIOError) or not old:
                return
        part.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the new name outlast a crash, where the system lets folders be synchronised (Windows does not)."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
