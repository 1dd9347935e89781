"""Files are written whole or not at all."""

import os
import sys

import pytest

from sparsebayes.app.files import whole_file


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
