"""Write rubric-file.schema.json, by which editors check rubric files: ``make options``."""

from __future__ import annotations

import json
from pathlib import Path

from mind2web2.scripts.rubric_reading import rubric_schema

SCHEMA_PAGE = Path(__file__).with_name("rubric-file.schema.json")

if __name__ == "__main__":
    text = json.dumps(rubric_schema(), indent=1, ensure_ascii=False)
    SCHEMA_PAGE.write_text(text + "\n", encoding="utf-8")
