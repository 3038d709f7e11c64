"""How long it takes to read 1,000 labels of others, each with a page as long as real ones are."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from measuring import title

from mind2web2.judge_check.check import LabelledPages
from mind2web2.judge_check.labelled_set import shipped_set
from mind2web2.plugins.judge_lab.outside_labels import read_labels

ROWS = 1_000


def main() -> None:
    """Write the rows, read them and print the seconds."""
    labelled = shipped_set()
    claims = [claim for claim in labelled.claims if claim.urls]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(ROWS):
                claim = claims[number % len(claims)]
                # Each row has a page of its own: none is shared.
                text = f"{number} {labelled.pages[claim.urls[0]].text}"
                row = {"claim": claim.question, "label": claim.right, "text": text}
                file.write(json.dumps(row) + "\n")
        size = path.stat().st_size
        started = time.perf_counter()
        found, _ = read_labels(str(path))
        seconds = time.perf_counter() - started
        pages = LabelledPages(found.pages, is_drawn=False)
        texts = [pages.get_web(url)[0] for claim in found.claims for url in claim.urls]
    title(f"{ROWS:,} labels with pages of their own, {size / 1e6:.0f} MB")
    sys.stdout.write(f"  read in {seconds:.2f} s (target 5 s), {len(texts):,} pages\n")


if __name__ == "__main__":
    main()
