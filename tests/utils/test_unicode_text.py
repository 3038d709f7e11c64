"""Text that can be written as UTF-8."""

import pytest

from mind2web2.utils.text import as_unicode_text, is_unicode_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("é東\U0001f600\ufeff", "é東\U0001f600\ufeff"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ufeffa\ud800", "\ufeffa\ufffd"),
    ],
)
def test_only_lone_surrogates_change(text, expected):
    """What cannot be written becomes the replacement character; the rest stays."""
    assert as_unicode_text(text) == expected
    assert is_unicode_text(text) == (text == expected)
    assert is_unicode_text(expected)
