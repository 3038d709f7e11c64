"""A judge on loopback that knows the labelled set, and the errors that it is told to make.

with labelled_judge({"careless": lambda case, url: ...}) as server:   a model's name, and when it
errs
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from servers.judge_server import VERDICT, Body, JudgeServer, prompt_text

from mind2web2_trust.judge_check.labelled_set import LabelledClaim, LabelledForm, shipped_set

Case = LabelledClaim | LabelledForm
# Returns a claim's verdict or a form's values in place of the right ones, ``None`` for those.
Errs = Callable[[Case, Any], Any]


def _block(name: str, text: str) -> str | None:
    found = re.search(rf"<<{name} (\w+)>>\n(.*?)\n<<end of {name} \1>>", text, re.DOTALL)
    return found[2] if found else None


def cases_by_question() -> dict[tuple[str, str | None], tuple[Case, Any]]:
    """Return each case with its right reply, by the claim or prompt and the page's address."""
    found: dict[tuple[str, str | None], tuple[Case, Any]] = {}
    labelled = shipped_set()
    for claim in labelled.claims:
        for url in claim.urls or (None,):
            found[claim.question, url] = (
                claim,
                url in claim.supported_by if url else claim.right,
            )
    for form in labelled.forms:
        found[form.question, form.url] = (form, dict(form.right))
    return found


def labelled_judge(errs: Mapping[str, Errs], **options: Any) -> JudgeServer:
    """Return a server that replies rightly but for the errors of each model.

    It supports other claims.
    """
    cases = cases_by_question()

    def reply(body: Body) -> Mapping[str, Any]:
        text = prompt_text(body)
        question = _block("claim", text) or _block("what to extract", text)
        asked = question, _block("page address", text)
        if asked not in cases:
            return VERDICT
        case, right = cases[asked]
        given = errs[body["model"]](case, right)
        given = right if given is None else given
        return (
            {"reasoning": "r", "result": given, "quote": ""} if isinstance(given, bool) else given
        )

    return JudgeServer(reply, **options)
