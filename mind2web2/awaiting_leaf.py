"""A leaf whose verdict is under way: whoever reads what is not there yet, by whatever way, is told on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from pydantic import BaseModel

from mind2web2.aggregation import Outcome
from mind2web2.verification_tree import TreeWatch, VerificationNode

_VERDICT_FIELDS = ("score", "status", "evidence")
# What holds the fields of any model: pydantic declares it as a slot.
_fields_slot = vars(BaseModel)["__dict__"]


def _fields_of(leaf: VerificationNode) -> dict[str, Any]:
    leaf._refuse("the fields of")


def _set_fields(leaf: VerificationNode, fields: dict[str, Any]) -> None:
    _fields_slot.__set__(leaf, fields)


class _AwaitingLeaf(VerificationNode):
    """What a leaf is meanwhile: without the verdict's fields, and with none of the ways around that."""

    # Here ``vars``, serialisation from outside and comparisons look for the fields.
    __dict__ = property(_fields_of, _set_fields)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; the description has nothing to do with the verdict."""
        if name == "desc" and isinstance(value, str):
            _fields_slot.__get__(self)[name] = value
        else:
            super().__setattr__(name, value)

    @property
    def awaits_verdict(self) -> bool:
        """Tell that a verdict is under way."""
        return True

    @property
    def verdict(self) -> Outcome:
        """Refuse: there is none."""
        self._refuse("the verdict on")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Refuse a representation."""
        self._refuse("a representation of")

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the same node; two of them differ in their places in any case."""
        return self is other

    __hash__ = None  # type: ignore[assignment]  # as any node


class _VerdictField:
    """Stands behind a field that is left out."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, leaf: VerificationNode | None, _owner: type) -> NoReturn:
        if leaf is None:
            raise AttributeError(f"a node's class has no attribute '{self._name}'")
        leaf._refuse(f"'{self._name}' of")


for _name in _VERDICT_FIELDS:
    # Afterwards, as pydantic would take it for the field's default.
    setattr(_AwaitingLeaf, _name, _VerdictField(_name))
_AwaitingLeaf.__name__ = VerificationNode.__name__
_AwaitingLeaf.__qualname__ = VerificationNode.__qualname__


def await_verdict(leaf: VerificationNode, watch: TreeWatch) -> dict[str, Any]:
    """Leave the verdict's fields out until ``take_verdict``, so that nobody reads what is not there yet.

    Returns:
        What ``take_verdict`` needs.
    """
    tree = leaf._tree
    tree.watch = watch
    tree.under_way += 1
    fields = leaf.__dict__
    # Another mapping, as a verdict brings one: who holds on to the former sees what stood there.
    _set_fields(leaf, {name: fields[name] for name in fields if name not in _VERDICT_FIELDS})
    object.__setattr__(leaf, "__class__", _AwaitingLeaf)
    return fields


def take_verdict(leaf: VerificationNode, fields: dict[str, Any]) -> None:
    """Be as before ``await_verdict``, apart from a new description."""
    desc = leaf.desc
    object.__setattr__(leaf, "__class__", VerificationNode)
    _set_fields(leaf, {**fields, "desc": desc})
    tree = leaf._tree
    tree.under_way -= 1
    if not tree.under_way:
        tree.watch = None
