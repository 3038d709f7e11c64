"""Writes the labelled set of ``mind2web2 check-judge`` again.

uv run python benchmarks/make_labelled_set.py
"""

import sys
from pathlib import Path

from labelled_set import labelled_set_json

if __name__ == "__main__":
    path = (
        Path(__file__).parent.parent / "mind2web2" / "judge_check" / "labelled_set.json"
    )
    path.write_text(labelled_set_json(), encoding="utf-8")
    sys.stdout.write(f"{path}\n")
