"""The values of a result that its script has extracted or added, as text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mind2web2.results.result_file import ResultFile
from mind2web2.rubric.verdicts import ExtractionRecord

_INDENT = "  "


def stored_values(result: ResultFile) -> Iterator[str]:
    """Yield the extracted values, ground truth and custom information of a result, line by line."""
    of_extraction = {record.name: record for record in result.extractions}
    for name, value in result.info_entries():
        if name == "no_info":
            continue
        record = of_extraction.get(name)
        yield f"{name}{'' if record is None else _source_text(record)}"
        yield from (
            _INDENT + text for text in json.dumps(value, ensure_ascii=False, indent=2).splitlines()
        )


def _source_text(record: ExtractionRecord) -> str:
    source = f" (from {record.url})" if record.url else ""
    if record.unavailable:
        return f"{source}: empty, as the page is unavailable: {record.unavailable}"
    return f"{source}: empty, as the judge refused to answer" if record.declined else source
