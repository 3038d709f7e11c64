"""A rubric file's tree as lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mind2web2.plugin import ReadRubric

# What the line of the node itself says, or the lines of those below.
_IN_HEAD = {"id", "desc", "critical", "tags", "for_each", "strategy", "children"}


def tree_lines(read: ReadRubric) -> Iterator[str]:
    """Yield the tree as lines of text: gates, leaves and what each leaf asks."""
    yield f"{read.rubric.task}: root, {read.rubric.root.strategy}"
    for place, node in read.nodes():
        indent = "  " * place.count("children")
        marks = ["critical"] if node.critical else []
        if node.children:
            marks.append(node.strategy or "parallel")
        if node.for_each is not None:
            marks.append(f"for each of {node.for_each}")
        marks += [f"tag {tag}" for tag in node.tags]
        marked = f" ({', '.join(marks)})" if marks else ""
        yield f"{indent}{node.id}{marked}: {node.desc}"
        said = node.model_dump(mode="json", exclude=_IN_HEAD, exclude_defaults=True)
        yield from (f"{indent}    {key}: {_text(value)}" for key, value in said.items())


def _text(value: object) -> str:
    """Return a value on one line; a list of one is that one."""
    if isinstance(value, list) and len(value) == 1:
        [value] = value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())
