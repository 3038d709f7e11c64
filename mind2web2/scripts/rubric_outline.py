"""A rubric file's tree as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

from mind2web2.scripts.rubric_file import Condition, Limit, RubricFile, RubricNode


def tree_lines(rubric: RubricFile) -> Iterator[str]:
    """Yield the tree as lines of text: gates, leaves and what each leaf asks."""
    yield f"{rubric.task}: root, {rubric.root.strategy}"
    yield from _lines(rubric.root.children, rubric, "  ")


def _lines(nodes: tuple[RubricNode, ...], rubric: RubricFile, indent: str) -> Iterator[str]:
    for node in nodes:
        marks = ["critical"] if node.critical else []
        if node.children:
            marks.append(node.strategy or "parallel")
        if node.for_each is not None:
            marks.append(f"for each of {rubric.extract[node.for_each].list} {node.for_each}")
        marks += [f"tag {tag}" for tag in node.tags]
        yield (
            f"{indent}{node.id} ({', '.join(marks)}): {node.desc}"
            if marks
            else f"{indent}{node.id}: {node.desc}"
        )
        yield from (f"{indent}    {part}" for part in _leaf_parts(node))
        yield from _lines(node.children, rubric, indent + "  ")


def _leaf_parts(node: RubricNode) -> Iterator[str]:
    yield from _condition_parts(node)
    if node.distinct is not None:
        yield f"distinct: {node.distinct}"
    for alternative in node.any_of:
        yield f"any of: {'; '.join(_condition_parts(alternative))}"
    if node.after:
        yield f"after: {', '.join(node.after)}"


def _condition_parts(node: Condition) -> Iterator[str]:
    if node.claim is not None:
        yield f"claim: {' '.join(node.claim.split())} <- {', '.join(node.sources)}"
    if node.instruction is not None:
        yield f"instruction: {' '.join(node.instruction.split())}"
    if node.present:
        yield f"present: {', '.join(node.present)}"
    if node.domain:
        yield f"domain: {', '.join(node.domain)}"
    if node.equals is not None:
        equals = node.equals
        wanted = " + ".join(equals.sum_of) or equals.same_as or repr(equals.value)
        within = f", within {equals.within}" if equals.within else ""
        yield f"equals: {equals.field} = {wanted} (as {equals.compare}{within})"
    if node.limit is not None:
        yield f"limit: {_limit_text(node.limit)}"


def _limit_text(limit: Limit) -> str:
    found = " + ".join(limit.sum_of) or limit.field or f"number of {limit.count_of}"
    bounds = {**limit.numbers, **limit.days}
    texts = [f"{key.replace('_', ' ')} {bound}" for key, bound in bounds.items()]
    return f"{found} {' and '.join(texts)}"
