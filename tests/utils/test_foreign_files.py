"""Reading files that others may have made."""

import os

import pytest

from mind2web2.utils.files import read_regular_file


def test_a_file_is_read_also_through_a_link(tmp_path):
    """As large as it may be, to the byte."""
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    assert read_regular_file(tmp_path / "file", 5) == read_regular_file(tmp_path / "link") == b"12345"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.mkdir(), "directory"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: path.symlink_to(path.name), "symbolic links"),
        (lambda path: path.write_bytes(b"123456"), "more than 5 bytes"),
        (lambda path: path.with_name("other").touch(), "No such file"),
    ],
)
def test_anything_else_is_told(make, reason, tmp_path):
    """Without waiting for whoever might write into a pipe, and before anything large is read."""
    make(tmp_path / "file")
    with pytest.raises(OSError, match=reason):
        read_regular_file(tmp_path / "file", 5)
