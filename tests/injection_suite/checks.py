"""Check without a model where each attack ends up in the judge's messages."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from injection_suite.attack import TASK, Attack
from injection_suite.attacks import TASK_CODE
from injection_suite.carriers import claim_with
from injection_suite.material import Material, materials

from mind2web2.llm_client.chat import Completion, Message
from mind2web2.llm_client.structured_output import InvalidOutputError, repair_messages
from mind2web2.pages.link_judge import discovery_messages
from mind2web2.prompts import HashedText
from mind2web2.prompts.flags import flags_of, one_a_kind
from mind2web2.rubric.verdicts import Flag
from mind2web2.utils.invisible_text import make_visible
from mind2web2.verification.messages import extraction_messages, verification_messages

_OPENING = re.compile(r"<<(?P<name>[a-z ]+) (?P<code>[0-9a-f]{20})>>\n")
_HARMLESS = "It lies in the hills."
# A text that is never shown must not be shown in parts either.
_TELLING_CHARS = 24
_WHERE_SHOWN = {"answer": "answer", "page address": "page address", "claim": "claim"}


@dataclass(frozen=True, slots=True)
class AttackCheck:
    """The outcome of one attack.

    Args:
        flags: raised for the answer, the page or the claim.
        problems: what is not as it should be, a line each.
    """

    attack: Attack
    flags: tuple[Flag, ...] = ()
    problems: tuple[str, ...] = ()


async def check_attacks(attacks: Sequence[Attack]) -> list[AttackCheck]:
    """Return what becomes of each attack in every message that a judge could be sent."""
    with tempfile.TemporaryDirectory() as folder:
        staged = await materials(attacks, Path(folder))
    return [check_material(material) for material in staged]


def check_material(material: Material) -> AttackCheck:
    """Hold one attack's messages against what is to become of it."""
    attack = material.attack
    problems = list(_problems(material))
    flags = raised_flags(material)
    kinds = [flag.kind for flag in flags]
    if attack.flag is not None and attack.flag not in kinds:
        problems.append(f"not flagged as {attack.flag}")
    if attack.flag is None and kinds:
        problems.append(f"flagged as {', '.join(kinds)}, which it is not")
    return AttackCheck(attack, flags, tuple(dict.fromkeys(problems)))


def raised_flags(material: Material) -> tuple[Flag, ...]:
    """Return the flags that a result would show for the attack."""
    page = material.page.flags if material.page is not None else ()
    claim = claim_with(material.attack, material.attack.claim)
    # An address stands in its answer too.
    answer = flags_of(material.answer) if material.attack.place == "answer" else ()
    return one_a_kind((*answer, *page, *flags_of(claim)))


def _problems(material: Material) -> Iterator[str]:
    attack = material.attack
    if attack.place == "judge's reply":
        yield from _problems_of_repair(attack)
        return
    for name, messages, harmless in _questions(material):
        if outside_blocks(messages) != outside_blocks(harmless):
            yield f"{name}: something of it stands outside its block"
        text = _text(messages)
        if attack.fate == "never" and (shown := _shown_part(attack.text, text)):
            yield f"{name}: shown to the judge: {shown!r}"
        if attack.fate == "marked" and attack.text in text:
            yield f"{name}: shown as it was written"
    if attack.fate == "never":
        return
    block = _WHERE_SHOWN.get(attack.place, "page")
    asked = _verification(material)
    if _squeezed(_expected(attack)) not in _squeezed(blocks(asked).get(block, "")):
        yield f"not found in the block named {block}"


def _expected(attack: Attack) -> str:
    """Return the attack as a judge sees it, without a code copied from an earlier block."""
    return make_visible(attack.text).replace(TASK_CODE, "[delimiter removed]")


def _verification(material: Material) -> list[Message]:
    claim = claim_with(material.attack, material.attack.claim)
    return verification_messages(TASK, material.answer, material.page, claim, None)


def _questions(
    material: Material,
) -> Iterator[tuple[str, list[Message], list[Message]]]:
    """Return each question that the attack can reach, beside the same one with a harmless text."""
    attack, answer, page = material.attack, material.answer, material.page
    calm = replace(attack, text=_HARMLESS)
    calm_answer = _HARMLESS
    calm_page = (
        None
        if page is None
        else replace(page, url="http://lake.example", text=HashedText(_HARMLESS))
    )
    claim, calm_claim = claim_with(attack, attack.claim), claim_with(calm, attack.claim)
    for name, shown, calm_shown in (
        ("with the page", page, calm_page),
        ("without a page", None, None),
    ):
        if shown is None and name == "with the page":
            continue
        yield (
            f"verification {name}",
            verification_messages(TASK, answer, shown, claim, "None"),
            verification_messages(TASK, calm_answer, calm_shown, calm_claim, "None"),
        )
        yield (
            f"extraction {name}",
            extraction_messages(TASK, answer, shown, claim, "Keep units."),
            extraction_messages(TASK, calm_answer, calm_shown, calm_claim, "Keep units."),
        )
    yield "list of links", discovery_messages(answer), discovery_messages(calm_answer)


def _problems_of_repair(attack: Attack) -> Iterator[str]:
    """Check how a judge's own reply goes back to it with the attack in it."""
    problem = InvalidOutputError(f"{attack.text}: Field required; Value error, {attack.text}")
    completion = Completion(text=f'{{"{attack.text}": 1}}')
    repair = repair_messages(completion, problem)
    harmless = repair_messages(Completion(text="{}"), InvalidOutputError(_HARMLESS))
    own = [turn for turn in repair if turn["role"] == "user"]
    if outside_blocks(own) != outside_blocks([turn for turn in harmless if turn["role"] == "user"]):
        yield "repair: something of it stands outside its block"


def outside_blocks(messages: Sequence[Message]) -> str:
    """Return what a judge is told outside of all blocks, with the blocks' names in their places."""
    return "\0".join(f"{message['role']}: {_outside(_text([message]))}" for message in messages)


def blocks(messages: Sequence[Message]) -> dict[str, str]:
    """Return the texts of the last message's blocks by name."""
    return {name: text for name, text, _ in _pieces(_text(messages[-1:])) if name}


def _outside(text: str) -> str:
    return "".join(f"({name})" if name else between for name, _, between in _pieces(text))


def _pieces(text: str) -> Iterator[tuple[str, str, str]]:
    """Return blocks as name and text, and the text between them, as a judge reads them."""
    position = 0
    while opening := _OPENING.search(text, position):
        closing = f"\n<<end of {opening['name']} {opening['code']}>>"
        end = text.find(closing, opening.end())
        if end == -1:
            break
        yield "", "", text[position : opening.start()]
        yield opening["name"], text[opening.end() : end], ""
        position = end + len(closing)
    yield "", "", text[position:]


def _text(messages: Sequence[Message]) -> str:
    contents = [message["content"] for message in messages]
    parts = [[{"text": content}] if isinstance(content, str) else content for content in contents]
    return "".join(part.get("text", "") for content in parts for part in content)


def _squeezed(text: str) -> str:
    """Return a text without blanks, which a browser and a PDF set as they like."""
    return "".join(text.split())


def _shown_part(secret: str, text: str) -> str | None:
    wanted, shown = _squeezed(secret), _squeezed(text)
    starts = range(max(1, len(wanted) - _TELLING_CHARS + 1))
    parts = (wanted[start : start + _TELLING_CHARS] for start in starts)
    return next((part for part in parts if part in shown), None)
