"""Files are written whole or not at all."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sparsebayes
from sparsebayes.io import atomic_file
from sparsebayes.io.atomic_file import whole_file

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links, locks and signals are POSIX")


@pytest.fixture
def path(tmp_path):
    """A file with an older content, alone in its folder."""
    path = tmp_path / "model.skops"
    path.write_bytes(b"old")
    return path


def assert_untouched(path):
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def write(path, data=b"new"):
    with whole_file(path) as file:
        file.write(data)


@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["str", "Path"])
def test_replaces_the_old_content_and_leaves_nothing_else(path, kind):
    write(kind(path))
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_nothing_is_seen_before_all_is_written(path):
    with whole_file(path) as file:
        file.write(b"half of it")
        file.flush()
        assert path.read_bytes() == b"old"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_failure_in_the_block_leaves_the_old_file(path, error):
    def fail():
        with whole_file(path) as file:
            file.write(b"half of it")
            raise error

    with pytest.raises(error):
        fail()
    assert_untouched(path)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_of_the_system_leaves_the_old_file(path, step, monkeypatch):
    def fail(*args):
        raise PermissionError(13, "not allowed")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(PermissionError):
        write(path)
    assert_untouched(path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of a process's files")
def test_a_full_disk_leaves_the_old_file(path):
    """A real failure to write: the system lets this process write no more than 10,000 bytes to a file."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write(path, bytes(1_000_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_untouched(path)


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such folder.*nowhere"):
        write(tmp_path / "nowhere" / "model.skops")


def test_a_folder_or_a_device_is_not_replaced(tmp_path):
    for place in (tmp_path, "/dev/null") if os.path.exists("/dev/null") else (tmp_path,):
        with pytest.raises(OSError, match="plain file"):
            write(place)


@pytest.mark.skipif(sys.platform == "win32", reason="links and permissions are POSIX")
def test_permissions_and_links_stay(path, tmp_path):
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    write(link)
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are POSIX")
def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    write(tmp_path / "ours")
    (tmp_path / "any").write_bytes(b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "any").stat().st_mode


# --- links that lead nowhere, and files that killed processes leave behind ---


@POSIX
def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "self").symlink_to("self")
    for name in ("one", "self"):
        with pytest.raises(OSError, match="leads to itself"):
            write(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["one", "self", "two"]
    assert all((tmp_path / name).is_symlink() for name in ("one", "self", "two"))


@POSIX
def test_a_link_to_a_file_that_is_yet_to_come_is_followed(tmp_path):
    (tmp_path / "link").symlink_to("later")
    write(tmp_path / "link")
    assert (tmp_path / "later").read_bytes() == b"new"


WRITER = """
import sys, time
from sparsebayes.io.atomic_file import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half of it")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def writer(path):
    """A process that is in the middle of writing."""
    environment = os.environ | {"PYTHONPATH": str(Path(sparsebayes.__file__).parents[1])}
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env=environment)
    assert process.stdout.readline() == b"writing\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def parts(path):
    return [name for name in os.listdir(path.parent) if name.endswith(".part")]


@POSIX
@pytest.mark.parametrize("number", ["SIGTERM", "SIGKILL"])
def test_what_a_killed_process_left_is_removed_by_the_next(number, writer, path):
    writer.send_signal(getattr(signal, number))
    writer.wait()
    assert len(parts(path)) == 1
    write(path)
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


@POSIX
def test_what_another_process_is_writing_stays(writer, path):
    write(path)
    assert len(parts(path)) == 1


@POSIX
def test_without_locks_only_what_is_old_is_removed(path, monkeypatch):
    def unsupported(file, wait):
        raise OSError(95, "not supported")

    monkeypatch.setattr(atomic_file, "_lock", unsupported)
    left = path.with_name(".sparsebayes-0123456789abcdef.part")
    left.write_bytes(b"x")
    write(path)
    assert left.exists()
    long_ago = time.time() - 2 * atomic_file.ABANDONED
    os.utime(left, (long_ago, long_ago))
    write(path)
    assert not left.exists()


@POSIX
def test_nothing_but_our_own_files_is_removed(path, tmp_path):
    others = [".0123456789abcdef.part", ".sparsebayes-1.part", "x.sparsebayes-0123456789abcdef.part", "data.part"]
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / ".sparsebayes-0123456789abcdef.part").mkdir()
    (tmp_path / ".sparsebayes-0123456789abcde0.part").symlink_to(path)
    before = sorted(os.listdir(tmp_path))
    write(path)
    assert sorted(os.listdir(tmp_path)) == before
