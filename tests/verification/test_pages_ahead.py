"""Pages made ready while those before them are judged."""

import asyncio

from mind2web2.errors import CaptureError
from mind2web2.verification.claims import pages_ahead


class Workshop:
    """Notes which pages are begun, and which are given up."""

    def __init__(self):
        self.begun, self.given_up = [], []

    async def prepare(self, url):
        """Work without end, or fail."""
        self.begun.append(url)
        if url == "gone":
            raise CaptureError("404")
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up.append(url)


async def test_the_next_pages_are_begun_and_no_more():
    """Each once, however often its turn comes.

    Not the one that is checked, and none at all in sequence.
    """
    workshop = Workshop()
    async with pages_ahead(workshop.prepare, "abcdef", 3) as reach:
        for number, expected in (
            (0, "bc"),
            (0, "bc"),
            (1, "bcd"),
            (4, "bcdef"),
            (5, "bcdef"),
        ):
            reach(number)
            await asyncio.sleep(0)
            assert "".join(workshop.begun) == expected
    async with pages_ahead(workshop.prepare, "xyz", 1) as reach:
        reach(0)
        await asyncio.sleep(0)
    assert sorted(workshop.given_up) == sorted(workshop.begun) == list("bcdef")


async def test_an_unavailable_page_is_no_error_yet():
    workshop = Workshop()
    async with pages_ahead(workshop.prepare, ["a", "gone", "b"], 3) as reach:
        reach(0)
        await asyncio.sleep(0)
    assert workshop.begun == ["gone", "b"]
