"""Checks of every eval script: it ends, both orders give one tree, and no name of ours is missing.

The judges are scripted: by a hash of the claim, all true or all false; extractions are filled by
the template's schema with names, numbers, lists and the addresses of stored pages.
"""

import hashlib
import json
import shutil

from projects import Project, block_in, evaluate, messages_text

from mind2web2.llm_client.chat import ChatReply, Usage

PAGES = [f"https://www.example.org/page/{number}" for number in range(8)]
ANSWER = "\n".join(f"Item {number} is good ([source]({url}))." for number, url in enumerate(PAGES))
VERDICTS = {
    "by hash": lambda text: hashlib.sha256(text.encode()).digest()[0] < 160,
    "all true": lambda _text: True,
    "all false": lambda _text: False,
}
MISSES = ("the toolkit does not have", "that it does not take", "did not return within")


class TemplateJudge:
    """Decides a claim by its text, and fills any other template by its schema."""

    endpoint = "the judge of the script checks"

    def __init__(self, verdict):
        self._verdict = verdict

    async def chat(self, request, limit=None):
        """Answer one request."""
        async with limit:
            text = messages_text(request.messages)
        claim, page = block_in(text, "claim"), block_in(text, "page address")
        if request.template is None:
            return ChatReply(text="a text", usage=Usage())
        filled = plausible(request.template.model_json_schema())
        if claim is not None:
            filled = {
                "reasoning": "scripted",
                "result": self._verdict(f"{claim} {page}"),
            }
        return ChatReply(text=json.dumps(filled), usage=Usage())

    async def close(self):
        """Close nothing."""


def plausible(schema):
    """Return what an agent's answer might hold of such a form."""
    return _value(schema, schema.get("$defs", {}), "", 0)


def _value(form, forms, name, depth):
    if "$ref" in form:
        return _value(forms[form["$ref"].rpartition("/")[2]], forms, name, depth + 1)
    if "const" in form or "enum" in form:
        return form.get("const", form.get("enum", [None])[0])
    choices = form.get("anyOf") or form.get("oneOf") or form.get("allOf")
    if choices:
        known = [choice for choice in choices if choice.get("type") != "null"] or choices
        return (
            None
            if depth > 6 and len(known) < len(choices)
            else _value(known[0], forms, name, depth)
        )
    kind = form.get("type")
    if kind == "object" or "properties" in form:
        fields = form.get("properties", {})
        return {key: _value(field, forms, key, depth + 1) for key, field in fields.items()}
    if kind == "array":
        count = 0 if depth > 6 else max(form.get("minItems", 0), min(2, form.get("maxItems", 2)))
        return [
            _value(form.get("items", {}), forms, f"{name} {number}", depth + 1)
            for number in range(count)
        ]
    return _plain(form, kind, name)


def _plain(form, kind, name):
    number = int(hashlib.sha256(name.encode()).hexdigest(), 16) % len(PAGES)
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        low = form.get("minimum", form.get("exclusiveMinimum", 0) + 1)
        return min(
            max(number, low),
            form.get("maximum", form.get("exclusiveMaximum", low + number + 2) - 1),
        )
    if kind == "null":
        return None
    if form.get("format") == "uri" or any(
        part in name.lower() for part in ("url", "link", "source", "homepage", "site")
    ):
        return PAGES[number]
    dates = {"date": "2025-07-14", "date-time": "2025-07-14T12:00:00Z"}
    return dates.get(form.get("format"), f"{name} text")[: form.get("maxLength")]


async def problems(script, folder, judges=tuple(VERDICTS), *, needs_result=False):
    """Return, one line each, what is wrong with how a script runs under the scripted judges.

    Args:
        needs_result: a script that raises is wrong too.
    """
    found = []
    for name in judges:
        verdict = VERDICTS[name]
        by_order = []
        for ahead in ("values", "gates", None):
            root = folder / f"{name} {ahead}"
            outcome = await _outcome(script, root, verdict, ahead)
            shutil.rmtree(root)
            by_order.append(_seen(outcome))
            reason = outcome.reason
            if reason is not None and (needs_result or any(miss in reason for miss in MISSES)):
                found.append(f"{name}: {outcome.reason}")
        *passes, in_order = by_order
        found += [
            f"{name}: passes give {each}, and program order {in_order}"
            for each in passes
            if each != in_order
        ]
    return found


async def _outcome(script, root, verdict, ahead):
    project = Project(root)
    project.add_answer("answer_1", ANSWER)
    project.add_raw_script(script.read_text(encoding="utf-8"))
    for number, url in enumerate(PAGES[:6]):
        project.cache().put_web(url, f"Page {number}: open on Sunday, entry is free.", None)
    [outcome] = await evaluate(
        project,
        TemplateJudge(verdict),
        ahead=ahead,
        answer_timeout_s=120,
    )
    return outcome


def _seen(outcome):
    if outcome.result is None:
        return outcome.reason
    breakdown = outcome.result.document.get("eval_breakdown") or [{}]
    return outcome.score, breakdown[0].get("verification_tree")
