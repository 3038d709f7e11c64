"""A rubric tree as it stands in a result (eval-scripts.md, "Summary")."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import to_jsonable_python

from mind2web2.rubric.aggregation import Outcome
from mind2web2.rubric.consistency import implied_verdict
from mind2web2.rubric.evidence import Evidence
from mind2web2.rubric.node import VerificationNode

_UNDECIDED = Outcome(0.0, "initialized")


def tree_as_dict(root: VerificationNode) -> dict[str, Any]:
    """Return the tree with scores, statuses and evidence as plain data, however deep it is."""
    written: dict[int, dict[str, Any]] = {}
    for node in root.walk():
        written[id(node)] = _node_as_dict(node)
        if node is not root:
            written[id(node.parent)]["children"].append(written[id(node)])
    return written[id(root)]


def tree_statistics(root: VerificationNode) -> dict[str, int]:
    """Return the edges of the longest branch, and the number of nodes and leaves."""
    levels: dict[int, int] = {}
    leaf_count = 0
    for node in root.walk():
        levels[id(node)] = 0 if node is root else levels[id(node.parent)] + 1
        leaf_count += not node.children
    return {"depth": max(levels.values()), "total_nodes": len(levels), "leaf_nodes": leaf_count}


def _node_as_dict(node: VerificationNode) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": node.id,
        "desc": node.desc,
        "critical": node.critical,
        "score": node.score,
        "status": node.status,
        "strategy": node.strategy.value,
        "children": [],
    }
    if not node.children and node.verdict != (node.score, node.status):
        # Otherwise a reader would look in vain for why a leaf that passed shows as skipped.
        fields["superseded"] = {
            "score": node.verdict.score,
            "status": node.verdict.status,
            "reason": "behind the first shortfall of a sequence",
        }
    if not node.children:
        fields.update(_leaf_fields(node))
    elif node.evidence is not None:
        fields["evidence"] = node.evidence.model_dump(mode="json", exclude_defaults=True)
    return fields


def _leaf_fields(leaf: VerificationNode) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    evidence = leaf.evidence
    if evidence is None and leaf.verdict != _UNDECIDED:
        evidence = Evidence(decided_by="script", reason="the script has set it")
    implied = None if evidence is None else implied_verdict(evidence)
    if implied not in (None, leaf.verdict):
        # Otherwise a reader would look in vain for why a leaf is not what its votes come to.
        fields["overruled"] = {**implied._asdict(), "reason": "the script has set it otherwise since"}
    if leaf.blocked_as is not None and not leaf.verdict.blocks:
        # Otherwise a reader would look in vain for why leaves that depend on it were skipped.
        reason = "it was decided otherwise since"
        fields["earlier"] = {"score": 0.0, "status": leaf.blocked_as, "reason": reason}
    if evidence is not None:
        fields["evidence"] = evidence.model_dump(mode="json", exclude_defaults=True)
    return fields


def plain_info(info: Any) -> Any:
    """Return a script's own data as JSON can hold it: dates, URLs and templates as text and objects."""
    plain = to_jsonable_python(info, fallback=str, bytes_mode="base64")
    # JSON has no infinity; pydantic keeps it as a number here.
    return json.loads(json.dumps(plain), parse_constant=str)
