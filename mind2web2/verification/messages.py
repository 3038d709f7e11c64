"""The judge's questions: is a claim supported, what does a page or answer say.

And the form of a verdict.
"""

from __future__ import annotations

from mind2web2.llm_client.chat import ImagePart, Message, TextPart
from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.prompts import NO_INSTRUCTION, BlockChain, instructions, shown_text
from mind2web2.rubric.verdicts import QuoteSource

_ON_PAGE = "Does the page support this claim?"
_WITHOUT_PAGE = "Is this claim correct?"
_FROM_PAGE = "Fill the form from the page above."
_FROM_ANSWER = "Fill the form from the answer above."
_NO_IMAGES = "No images are shown."


def verification_messages(
    task: str,
    answer: str,
    page: PreparedPage | None,
    claim: str,
    additional_instruction: str | None,
) -> list[Message]:
    """Return the question whether a page supports a claim.

    Without a page, the question is whether the claim is correct.
    """
    chain = BlockChain()
    parts: list[TextPart | ImagePart] = [
        _text([str(chain.block("task", task)), str(chain.block("answer", answer))])
    ]
    if page is not None:
        parts += _page_parts(chain, page)
    closing = [
        str(chain.block("claim", claim)),
        _extra_instruction(chain, additional_instruction),
        _WITHOUT_PAGE if page is None else _ON_PAGE,
    ]
    return _messages("verify", [*parts, _text(closing)])


def extraction_messages(
    task: str,
    answer: str,
    page: PreparedPage | None,
    prompt: str,
    additional_instruction: str | None,
) -> list[Message]:
    """Return the request to fill a form from a page, or without one, from the answer.

    With a page the answer is not shown: a model that finds nothing on the page would copy from it.
    """
    chain = BlockChain()
    shown = [str(chain.block("task", task))]
    parts: list[TextPart | ImagePart]
    if page is None:
        parts = [_text([*shown, str(chain.block("answer", answer))])]
    else:
        parts = [_text(shown), *_page_parts(chain, page)]
    closing = [
        str(chain.block("what to extract", prompt)),
        _extra_instruction(chain, additional_instruction),
        _FROM_ANSWER if page is None else _FROM_PAGE,
    ]
    return _messages("extract", [*parts, _text(closing)])


def quotable(answer: str, page: PreparedPage | None) -> tuple[tuple[QuoteSource, str], ...]:
    """Return the texts that a verdict may rest on, by name, as they were shown."""
    if page is None:
        return (("answer", shown_text(answer)),)
    return (("page", page.text), ("address", shown_text(page.url)))


def _messages(name: str, parts: list[TextPart | ImagePart]) -> list[Message]:
    return [
        {"role": "system", "content": instructions(name)},
        {"role": "user", "content": parts},
    ]


def _page_parts(chain: BlockChain, page: PreparedPage) -> list[TextPart | ImagePart]:
    address = chain.block("page address", page.url)
    text = chain.block("page", page.text)
    images = f"Images of the page: {len(page.images)}." if page.images else _NO_IMAGES
    # Square brackets, as the instructions announce; such a note is ours and stands outside the
    # page's block.
    images += "".join(map(" [{}]".format, page.notes))
    parts: list[TextPart | ImagePart] = [
        _text([str(address), text.opening]),
        # A part of its own: the very same text object in all requests on this page.
        {"type": "text", "text": text.text},
        _text([text.closing, images]),
    ]
    for url in page.images:
        parts.append({"type": "image_url", "image_url": {"url": url, "detail": "high"}})
    return parts


def _extra_instruction(chain: BlockChain, additional_instruction: str | None) -> str:
    if not additional_instruction or additional_instruction.strip() in (
        "",
        NO_INSTRUCTION,
    ):
        return ""
    return str(chain.block("extra instruction", additional_instruction))


def _text(pieces: list[str]) -> TextPart:
    return {"type": "text", "text": "\n".join(filter(None, pieces))}
