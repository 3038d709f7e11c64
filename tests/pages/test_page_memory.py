"""Prepared pages in bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from mind2web2.pages.captures import PreparedPage
from mind2web2.pages.library import PageMemory
from mind2web2.prompts import HashedText


def content(size_chars):
    """Return a page of text."""
    return PreparedPage("", "web", None, HashedText("x" * size_chars), size_chars, size_chars)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3000)), max_size=30), st.integers(0, 6000))
def test_the_least_recently_used_are_dropped(uses, limit_bytes):
    """A model that keeps everything in a list agrees about what is there, use by use."""
    memory, model = PageMemory(limit_bytes), []
    for key, size in uses:
        kept = memory.get(key)
        assert (kept is not None) is any(key == known for known, _ in model)
        if kept is None:
            kept = content(size)
            dropped = memory.keep(key, kept)
            model.append((key, kept))
            expected = []
            while sum(each.memory_bytes for _, each in model) > limit_bytes and len(model) > 1:
                expected.append(model.pop(0)[0])
            assert dropped == expected
        else:
            model.sort(key=lambda each: each[0] == key)


def test_texts_and_images_count_with_their_encoding():
    """What is kept for requests is memory too; plain images are kept once."""
    image = HashedText("data:image/jpeg;base64," + "A" * 1000).prepared()
    text = HashedText('"quoted"' * 100).prepared()
    page = PreparedPage("", "web", None, text, 800, 800, (image, image))
    assert 2 * 1000 + 2 * 800 < page.memory_bytes < 2 * 1000 + 2 * 800 + 1000
