"""Precision and recall of URL discovery on the labelled snippets, and milliseconds an answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from measuring import median_s, show, title

from mind2web2.pages.citations import cited_urls

SNIPPETS = Path(__file__).parents[1] / "tests/fixtures/url_snippets.json"
WORDS = (
    "The museum opened in 1932 and has forty rooms, of which the last was **restored** in spring. "
)
HOSTILE = (
    "[",
    "![",
    "<https://",
    "https://a)",
    "a.org ",
    "- - - a\n",
    "|a|b|\n|-|-|\n",
    "[a]: https://a.org/b\n",
)
TARGET_MEGABYTE_S = 2.0


def show_quality() -> None:
    """Print both shares, and every snippet that is not answered as labelled."""
    snippets = json.loads(SNIPPETS.read_text(encoding="utf-8"))
    right = wanted = given = 0
    for snippet in snippets:
        urls, found = set(snippet["urls"]), set(cited_urls(snippet["text"]))
        right, wanted, given = (
            right + len(urls & found),
            wanted + len(urls),
            given + len(found),
        )
        for url in sorted(urls ^ found):
            fault = "missed" if url in urls else "wrong"
            sys.stdout.write(f"  {fault} {url} in: {snippet['about']}\n")
    sys.stdout.write(f"  {len(snippets)} snippets, {wanted} URLs: precision {right / given:.4f}, ")
    sys.stdout.write(f"recall {right / wanted:.4f} (target 0.99 each)\n")


def answer(chars: int) -> str:
    """Return a report of about this length with a link a paragraph and a list of sources."""
    count = chars // (5 * len(WORDS) + 130)
    paragraphs = [
        f"{WORDS * 5}[{n}] ([site](https://example.org/page/{n}))\n" for n in range(count)
    ]
    return "\n".join(
        [
            *paragraphs,
            *(f"[{n}]: https://example.org/source/{n}_(a)" for n in range(count)),
        ]
    )


def main() -> None:
    """Measure and print."""
    title("URL discovery: quality")
    show_quality()
    title("URL discovery: time an answer")
    for chars in (5_000, 20_000, 80_000):
        text = answer(chars)
        show(
            f"an answer of {len(text):,} characters",
            median_s(lambda text=text: cited_urls(text)),
        )
    title("URL discovery: one megabyte")
    show(
        "of an ordinary answer",
        median_s(lambda: cited_urls(answer(1_000_000)), 1),
        TARGET_MEGABYTE_S,
    )
    for unit in HOSTILE:
        text = unit * (1_000_000 // len(unit))
        took_s = median_s(lambda text=text: cited_urls(text), 1)
        show(f"of {unit!r}", took_s, TARGET_MEGABYTE_S)


if __name__ == "__main__":
    main()
