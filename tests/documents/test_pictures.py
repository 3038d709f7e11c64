"""The pictures of the documentation show the views as they are."""

import runpy

from projects import REPOSITORY


def test_no_view_has_changed_since_its_picture_was_taken():
    """If this fails, ``make pictures`` takes them again."""
    pictures = runpy.run_path(str(REPOSITORY / "examples/make_pictures.py"))
    taken_of = pictures["DRAWN_FROM"].read_text(encoding="utf-8").strip()
    assert taken_of == pictures["drawn_from"]()
