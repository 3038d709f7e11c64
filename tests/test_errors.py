"""Errors that several parts of the package raise in the same words."""

import pytest

from mind2web2.errors import ResultWriteError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("the file is closed"), "the file is closed"),
    ],
)
def test_a_place_that_cannot_be_written_has_a_reason(error, reason):
    with pytest.raises(ResultWriteError) as raised, ResultWriteError.unable_to("write to a/b"):
        raise error
    assert str(raised.value) == f"cannot write to a/b: {reason}"
