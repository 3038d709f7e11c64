"""Claims and forms whose right reply is beyond doubt, as data, with the prompts that they lead to.

uv run python tests/judge_cases.py      writes fixtures/judge_cases/prompts.md, for people to read
"""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from pydantic import BaseModel, create_model

from mind2web2.llm_client.chat import Message
from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.prompts import HashedText, instructions
from mind2web2.verification.messages import extraction_messages, verification_messages

FOLDER = Path(__file__).parent / "fixtures" / "judge_cases"
PROMPTS = FOLDER / "prompts.md"
_TYPES: dict[str, Any] = {
    "text": str,
    "integer": int,
    "number": float,
    "list of text": list[str],
    "text or null": str | None,
    "integer or null": int | None,
    "number or null": float | None,
}


@dataclass(frozen=True)
class Case:
    """One question with the reply that is right.

    Args:
        page: the page's name; ``None`` where the answer is to be read.
        expected: a verdict, or the values of a form.
        quote: the passage that decides a claim, empty where none does.
        template: of an extraction.
    """

    name: str
    category: str
    page: str | None
    expected: bool | dict[str, Any]
    messages: list[Message]
    quote: str = ""
    template: type[BaseModel] | None = None


def load_pages() -> tuple[str, str, dict[str, PreparedPage]]:
    """Return the task, the answer and the pages by name."""
    content = _read("pages.json")
    return (
        content["task"],
        content["answer"],
        {page["id"]: _page(page) for page in content["pages"]},
    )


def load_cases() -> list[Case]:
    """Return all cases, those of a page together."""
    task, answer, pages = load_pages()
    cases = []
    for number, pair in enumerate(_read("claims.json")["pairs"], start=1):
        for verdict in (True, False):
            page = pair["page"] if verdict else pair.get("false_page", pair["page"])
            claim = pair["true" if verdict else "false"]
            messages = verification_messages(
                task, answer, pages.get(page), claim, pair.get("instruction")
            )
            quote = pair["quote" if verdict else "false_quote"]
            name = f"claim-{number:03}-{str(verdict).lower()}"
            cases.append(Case(name, pair["category"], page, verdict, messages, quote))
    for number, form in enumerate(_read("extractions.json")["forms"], start=1):
        fields: dict[str, Any] = {
            name: (_TYPES[kind], ...) for name, kind in form["fields"].items()
        }
        of_answer = form.get("answer", answer)
        messages = extraction_messages(
            task,
            of_answer,
            pages.get(form["page"]),
            form["prompt"],
            form.get("instruction"),
        )
        template = create_model("Form", **fields)
        name = f"form-{number:02}"
        cases.append(
            Case(
                name,
                form["category"],
                form["page"],
                form["value"],
                messages,
                template=template,
            )
        )
    return cases


def rendered() -> str:
    """Return the prompts of all cases as one text: what several have in common is shown once."""
    lines = [
        "# What judges are asked about the labelled cases",
        "",
        "Written by `uv run python tests/judge_cases.py`. The instructions come first; then each "
        "text that",
        "several questions share, followed by these questions with the replies that are right.",
    ]
    for name in ("verify", "extract"):
        lines += ["", f"## Instructions: {name}", "", _fenced(instructions(name))]
    by_shared = sorted(load_cases(), key=_shared_text)
    for number, (shared, cases) in enumerate(groupby(by_shared, key=_shared_text), start=1):
        lines += ["", f"## Shown {number}", "", _fenced(shared)]
        for case in sorted(cases, key=lambda case: case.name):
            expected = json.dumps(case.expected, ensure_ascii=False)
            quote = f", quote: {json.dumps(case.quote, ensure_ascii=False)}" if case.quote else ""
            lines += ["", f"### {case.name} ({case.category}): {expected}{quote}", ""]
            lines.append(_fenced(case.messages[-1]["content"][-1]["text"]))
    return "\n".join(lines) + "\n"


def _shared_text(case: Case) -> str:
    parts = case.messages[-1]["content"][:-1]
    drawn = {page["id"]: page["image"] for page in _read("pages.json")["pages"] if "image" in page}
    image = f"(image: {' / '.join(drawn.get(case.page or '', ()))})\n"
    return "".join(part["text"] if part["type"] == "text" else image for part in parts)


def _fenced(text: str) -> str:
    return f"~~~text\n{text.strip()}\n~~~"


def _page(raw: dict[str, Any]) -> PreparedPage:
    text = HashedText(raw["text"]).prepare()
    return PreparedPage(
        url=raw["url"],
        kind="pdf" if raw["url"].endswith(".pdf") else "web",
        sha256=None,
        text=text,
        text_chars=len(text),
        text_chars_stored=len(text),
        images=(_drawn(raw["image"]),) if "image" in raw else (),
        notes=tuple(raw.get("notes", ())),
    )


def _drawn(lines: list[str]) -> HashedText:
    image = Image.new("RGB", (1100, 120 + 90 * len(lines)), "white")
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((60, 60 + 90 * number), line, fill="black", font=ImageFont.load_default(56))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return HashedText(
        "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
    ).prepare()


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return content


if __name__ == "__main__":
    PROMPTS.write_text(rendered(), encoding="utf-8")
