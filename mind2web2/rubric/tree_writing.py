"""The rubric tree as results have it, written from a script's nodes; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict

from mind2web2.rubric.node import VerificationNode
from mind2web2.rubric.verdicts import Evidence, Outcome, Status, implied_verdict

if TYPE_CHECKING:
    from mind2web2.utils.json_text import JsonObject

_UNDECIDED = Outcome(0.0, "initialized")


class OtherVerdictFields(TypedDict):
    """A verdict that a leaf has or would have beside the one that it shows."""

    score: float
    status: Status
    reason: str


class NodeFields(TypedDict):
    """A node of a tree as results have it (``WrittenNode``)."""

    id: str
    desc: str
    critical: bool
    score: float
    status: Status
    strategy: str
    children: list[NodeFields]
    tags: NotRequired[list[str]]
    superseded: NotRequired[OtherVerdictFields]
    overruled: NotRequired[OtherVerdictFields]
    earlier: NotRequired[OtherVerdictFields]
    evidence: NotRequired[JsonObject]


def tree_as_dict(root: VerificationNode) -> NodeFields:
    """Return the tree with scores, statuses and evidence as plain data, however deep it is."""
    written: dict[int, NodeFields] = {}
    for node in root.walk():
        written[id(node)] = _node_as_dict(node)
        if node is not root:
            written[id(node.parent)]["children"].append(written[id(node)])
    return written[id(root)]


def _node_as_dict(node: VerificationNode) -> NodeFields:
    fields: NodeFields = {
        "id": node.id,
        "desc": node.desc,
        "critical": node.critical,
        "score": node.score,
        "status": node.status,
        "strategy": node.strategy.value,
        "children": [],
    }
    if node.tags:
        fields["tags"] = list(node.tags)
    if not node.children and node.verdict != (node.score, node.status):
        # Explains why a leaf that passed shows as skipped.
        fields["superseded"] = {
            "score": node.verdict.score,
            "status": node.verdict.status,
            "reason": "behind the first shortfall of a sequence",
        }
    if not node.children:
        _add_leaf_fields(fields, node)
    elif node.evidence is not None:
        fields["evidence"] = node.evidence.model_dump(mode="json", exclude_defaults=True)
    return fields


def _add_leaf_fields(fields: NodeFields, leaf: VerificationNode) -> None:
    evidence = leaf.evidence
    if evidence is None and leaf.verdict != _UNDECIDED:
        evidence = Evidence(decided_by="script", reason="the script has set it")
    implied = None if evidence is None else implied_verdict(evidence)
    if implied is not None and implied != leaf.verdict:
        # Explains why a leaf differs from its votes.
        fields["overruled"] = {
            "score": implied.score,
            "status": implied.status,
            "reason": "the script has set it otherwise since",
        }
    if leaf.blocked_as is not None and not leaf.verdict.blocks:
        # Explains why leaves that depend on it were skipped.
        reason = "it was decided otherwise since"
        fields["earlier"] = {"score": 0.0, "status": leaf.blocked_as, "reason": reason}
    if evidence is not None:
        fields["evidence"] = evidence.model_dump(mode="json", exclude_defaults=True)
