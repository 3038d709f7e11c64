"""Probes made on the example's pages and on those of the labelled set.

The script shows how fast they are made, and which are discarded.

Run ``uv run python benchmarks/probe_pages.py``; ``--discarded`` prints each discarded change with
its claim, so that a person can judge whether the changed page might still have supported it.
Nothing is asked.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator

from mind2web2.judge_check.labelled_set import shipped_set
from mind2web2.plugins.probe.changes import change_page
from mind2web2.plugins.probe.edits import CHANGES, CONTROLS, Change, ChangeKind, Discarded
from mind2web2.plugins.probe.passages import JudgedPage
from mind2web2.utils.facts import facts_in

PROBES = 200


def judged_pages() -> Iterator[JudgedPage]:
    """Yield the true claims of the labelled set whose one page says it in its text."""
    labelled = shipped_set()
    for claim in labelled.claims:
        if not claim.right or not claim.shows or len(claim.urls) != 1:
            continue
        url = claim.urls[0]
        text, passage = labelled.pages[url].text, claim.shows[0]
        start = text.find(passage)
        if start >= 0 and labelled.pages[url].picture is None:
            yield JudgedPage(claim.question, text, start, start + len(passage), url)


def reads_values(page: JudgedPage, text: str) -> bool:
    """Tell whether a page has all values of the claim that the quoted sentences have."""
    quoted = "\n".join(page.text[each.start : each.end] for each in page.quoted)
    shared = {fact.value for fact in facts_in(page.claim)} & {
        fact.value for fact in facts_in(quoted)
    }
    return shared <= {fact.value for fact in facts_in(text)}


def main() -> None:
    """Print the time, the changes and what was discarded."""
    write = sys.stdout.write
    pages = list(judged_pages())
    draw = random.Random(0)
    draw.shuffle(pages)
    made: list[tuple[JudgedPage, Change]] = []
    discarded: list[tuple[JudgedPage, Discarded]] = []
    began_s = time.process_time()
    # One kind for each claim at first, as a probe has it.
    turns = [(page, kind) for shift in range(len(CHANGES)) for page, kind in _turn(pages, shift)]
    took_s = 0.0
    for page, kind in turns:
        change = change_page(page, kind, draw)
        if isinstance(change, Change):
            made.append((page, change))
        elif change is not None:
            discarded.append((page, change))
        if len(made) == PROBES and not took_s:
            took_s = time.process_time() - began_s
    write(f"{PROBES} changes: {took_s:.1f} s of processor time\n")
    write(f"made: {dict(Counter(change.kind for _, change in made))}\n")
    write(f"discarded: {len(discarded)} of {len(discarded) + len(made)}\n")
    controls = [(page, change_page(page, kind, draw)) for page in pages for kind in CONTROLS]
    alarms = [
        isinstance(change, Change) and not reads_values(page, change.text)
        for page, change in controls
    ]
    write(f"controls that a reader of values rejects: {sum(alarms)} of {len(alarms)}\n")
    values = [each for each in made if each[1].kind in ("number", "date", "name")]
    noticed = sum(not reads_values(page, change.text) for page, change in values)
    write(f"values that a reader of values misses: {noticed} of {len(values)}\n")
    for page, change in discarded if "--discarded" in sys.argv else ():
        write(f"{change.kind}, {change.reason}: {page.claim} ({page.address})\n")


def _turn(pages: list[JudgedPage], shift: int) -> Iterator[tuple[JudgedPage, ChangeKind]]:
    for number, page in enumerate(pages):
        yield page, CHANGES[(number + shift) % len(CHANGES)]


if __name__ == "__main__":
    main()
