"""Rubrics of other tools as rubric files, and rubric files as QUEST's tree."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mind2web2.authoring.rubric_text import expanded, rubric_yaml
from mind2web2.errors import UsageError
from mind2web2.scripts.rubric_file import FROM_ANSWER, RubricFile, RubricNode
from mind2web2.scripts.rubric_reading import parsed_rubric
from mind2web2.utils.files import read_regular_file
from mind2web2.utils.json_fields import items, mapping, mappings

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Imported:
    """A rubric of another tool.

    Args:
        kind: the tool's name.
        left_out: criteria with a negative weight, which a tree without weights cannot hold as they are.
    """

    rubric: RubricFile
    kind: str
    left_out: int = 0

    def text(self) -> str:
        """Return the rubric file's text with a note on its origin."""
        notes = [
            f"Imported from {self.kind}. Each claim is judged from the answer alone: to have it checked on"
        ]
        notes.append(
            "cited pages, extract their addresses and name them as its sources."
        )
        if self.left_out:
            notes.append(
                f"{self.left_out} criteria with a negative weight were left out; --negate writes denials."
            )
        return "".join(f"# {note}\n" for note in notes) + rubric_yaml(self.rubric)


def import_rubrics(
    path: Path, *, negate: bool = False, task_id: str | None = None
) -> list[Imported]:
    """Read rubrics of other tools from a JSON or JSON lines file.

    Args:
        negate: write criteria with a negative weight as denials instead of leaving them out.
        task_id: of the only rubric of the file; else an id in the record, or the file's name and a number.

    Raises:
        UsageError: a record has none of the known forms, or gives no proper tree.
    """
    records = list(_records(path))
    if task_id is not None and len(records) != 1:
        raise UsageError(f"{path} has {len(records)} rubrics: leave out --task_id")
    imported = []
    for number, record in enumerate(records, start=1):
        if len(records) == 1:
            fallback = path.stem
        else:
            fallback = f"{path.stem}_{number}"
        try:
            imported.append(
                _imported(record, task_id or _task_id(record, fallback), negate)
            )
        except (ValueError, ValidationError, KeyError) as error:
            raise UsageError(
                f"{path}, rubric {number}: {' '.join(str(error).split())}"
            ) from error
    return imported


def _records(path: Path) -> Iterator[Record]:
    try:
        text = read_regular_file(path).decode()
        lines = text.splitlines() if path.suffix == ".jsonl" else [text]
        found = [json.loads(line) for line in lines if line.strip()]
        if not found:
            raise UsageError(f"{path} is empty: there is no rubric to import")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"cannot read {path}: no JSON ({error})") from error
    for each in found[0] if len(found) == 1 and isinstance(found[0], list) else found:
        yield mapping(each)


def _task_id(record: Record, fallback: str) -> str:
    for name in ("prompt_id", "sample_id", "id", "qid", "task_id"):
        if isinstance(record.get(name), str | int) and "requirements" not in record:
            return re.sub(r"[^\w.-]+", "_", str(record[name])) or fallback
    return re.sub(r"[^\w.-]+", "_", fallback)


def _imported(record: Record, task_id: str, negate: bool) -> Imported:
    if "rubric_tree" in record:
        tree = _quest_node(mapping(record["rubric_tree"]), _Ids())
        children = tree.children or (tree,)
        root = {"strategy": tree.strategy or "parallel", "children": _plain(children)}
        return Imported(
            _rubric(task_id, str(record.get("task_description") or ""), root), "QUEST"
        )
    if "requirements" in record and "sub_tasks" in record:
        tree = _paper_node(record, 1.0, _Ids())
        question = str(record["requirements"])
        children = tree.children or (tree,)
        return Imported(
            _rubric(task_id, question, {"children": _plain(children)}), "PaperBench"
        )
    return _imported_list(record, task_id, negate)


def _imported_list(record: Record, task_id: str, negate: bool) -> Imported:
    if "answer" in record and "problem" in record:
        kind, question = "DRACO", str(record["problem"])
        answer = record["answer"]
        sections = mapping(json.loads(answer) if isinstance(answer, str) else answer)
        criteria = [
            each
            for section in mappings(sections.get("sections"))
            for each in mappings(section.get("criteria"))
        ]
    elif "rubrics" in record:
        criteria = mappings(record["rubrics"])
        is_health = any("points" in each for each in criteria)
        kind, question = (
            ("HealthBench" if is_health else "ResearchRubrics"),
            _prompt_text(record.get("prompt")),
        )
    else:
        raise ValueError(
            "neither QUEST (rubric_tree), PaperBench (requirements, sub_tasks), HealthBench or "
            "ResearchRubrics (rubrics), nor DRACO (problem, answer)"
        )
    leaves, left_out = [], 0
    for number, criterion in enumerate(criteria, start=1):
        leaf = _criterion(criterion, number, negate)
        left_out += leaf is None
        leaves += [] if leaf is None else [leaf]
    if not leaves:
        raise ValueError("no criteria")
    return Imported(
        _rubric(task_id, question, {"children": _plain(leaves)}), kind, left_out
    )


def _prompt_text(prompt: object) -> str:
    if isinstance(prompt, list):
        return "\n\n".join(
            str(message.get("content", "")) for message in mappings(prompt)
        )
    return str(prompt or "")


def _criterion(criterion: Record, number: int, negate: bool) -> RubricNode | None:
    text = str(criterion.get("criterion") or criterion["requirement"]).strip()
    weight = float(criterion.get("points", criterion.get("weight", 1)))
    if weight < 0 and not negate:
        return None
    meets = (
        "The answer does not meet this criterion"
        if weight < 0
        else "The answer meets this criterion"
    )
    axis = criterion.get("axis")
    return RubricNode(
        id=f"criterion_{number}",
        desc=_braced(" ".join(text.split())),
        claim=f"{meets}: {_braced(text)}",
        sources=(FROM_ANSWER,),
        tags=tuple(map(str, items(criterion.get("tags"))))
        or ((str(axis),) if axis else ()),
        weight=weight,
    )


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


class _Ids:
    """Gives each node an id of its own."""

    def __init__(self) -> None:
        self._taken = {"root"}

    def free(self, wanted: str) -> str:
        """Return a name, with a number where it is taken."""
        name, number = _braced(wanted) or "node", 2
        while name in self._taken:
            name, number = f"{_braced(wanted)}_{number}", number + 1
        self._taken.add(name)
        return name


def _quest_node(node: Record, ids: _Ids) -> RubricNode:
    name = ids.free(str(node["node_name"]))
    description = str(node.get("description") or name).strip()
    children = tuple(
        _quest_node(child, ids) for child in mappings(node.get("children"))
    )
    strategy = str(node.get("aggregation_strategy") or "parallel").lower()
    of_kind: dict[str, Any] = (
        {"children": children, "strategy": strategy}
        if children
        else _judged(description)
    )
    return RubricNode(
        id=name,
        desc=_braced(description),
        critical=bool(node.get("critical", False)),
        **of_kind,
    )


def _judged(requirement: str) -> dict[str, Any]:
    return {
        "claim": f"The answer meets this criterion: {_braced(requirement)}",
        "sources": (FROM_ANSWER,),
    }


def _paper_node(node: Record, share: float, ids: _Ids) -> RubricNode:
    """Return a node whose leaves have their share in the root's weighted mean as their weight."""
    requirement = str(node["requirements"]).strip()
    below = mappings(node.get("sub_tasks"))
    if not below:
        category = node.get("task_category")
        return RubricNode(
            id=ids.free(str(node.get("id") or "leaf")),
            desc=_braced(requirement),
            tags=(str(category),) if category else (),
            weight=share,
            **_judged(requirement),
        )
    name = ids.free(str(node.get("id") or "part"))
    total = sum(float(child["weight"]) for child in below)
    shares = [
        share * float(child["weight"]) / total if total else 0.0 for child in below
    ]
    children = tuple(
        _paper_node(child, part, ids) for child, part in zip(below, shares, strict=True)
    )
    return RubricNode(id=name, desc=_braced(requirement), children=children)


def _plain(nodes: Iterable[RubricNode]) -> list[dict[str, Any]]:
    return [node.model_dump(exclude_defaults=True) for node in nodes]


def _rubric(task_id: str, question: str, root: Mapping[str, Any]) -> RubricFile:
    rubric = RubricFile.model_validate(
        {"task": task_id, "question": question or f"Task {task_id}", "root": root}
    )
    # A gate with a child that is none, and ids that are no names, are found as in any file.
    return parsed_rubric(rubric_yaml(rubric).encode(), Path(f"{task_id}.yaml")).rubric


def quest_tree(rubric: RubricFile) -> dict[str, Any]:
    """Return a rubric as QUEST writes it: a tree without claims, sources and extraction."""
    return {
        "task_description": rubric.question.strip(),
        "rubric_tree": {
            "node_name": "root",
            "description": rubric.question.strip(),
            "critical": False,
            "aggregation_strategy": rubric.root.strategy,
            "children": _quest_children(expanded(rubric)),
        },
    }


def _quest_children(nodes: Sequence[RubricNode]) -> list[dict[str, Any]]:
    return [
        {
            "node_name": node.id,
            "description": node.desc,
            "critical": node.critical,
            "aggregation_strategy": node.strategy or "parallel",
            "children": _quest_children(node.children),
        }
        for node in nodes
    ]
