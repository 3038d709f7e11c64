"""The questions of a check, and the addresses that it opens."""

from typing import Any

import pytest
from passes_by_policy import result_by_policy

from mind2web2.scripts.isolation.messages import ScriptCall, SentRequest, SentTemplate
from mind2web2.utils.files import file_sha256
from mind2web2.verification.run_questions import AskedClaim, AskedForm
from mind2web2_check.rubric import page_address
from mind2web2_check.scoring import SCRIPT


class OwnClaims:
    """Takes each statement for its own claim, which holds."""

    def holds(self, claim: AskedClaim) -> bool:  # noqa: ARG002
        return True

    def fill(self, form: AskedForm, template: SentTemplate) -> str:  # noqa: ARG002
        return "{}"

    def page(self, url: str) -> str:
        raise AssertionError(url)

    def chat(self, request: SentRequest) -> str:
        raise AssertionError(request)

    def service(self, name: str, arguments: Any) -> Any:
        raise AssertionError((name, arguments))


async def test_a_check_waits_for_claims_asks_again_and_waits_for_verdicts() -> None:
    said = " ".join(f"Dam {n} was built in {1900 + n}. [{n % 8 + 1}]" for n in range(20))
    listed = "\n".join(f"[{n}] https://a.example/{n}" for n in range(1, 9))
    report = f"{said}\n\n## References\n{listed}\n"
    call = ScriptCall(SCRIPT, file_sha256(SCRIPT), "a", "answer_1.md", report, "m")
    result = await result_by_policy(call, OwnClaims(), ahead="values")
    asked = [question.name for question in result.questions]
    assert (asked.count("judged"), result.passes - 1) == (20, 3)


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("doi:10.1000/x.1", "https://doi.org/10.1000/x.1"),
        ("DOI: 10.1000/a<b>1", "https://doi.org/10.1000/a%3Cb%3E1"),
        ("10.1000/x", "https://doi.org/10.1000/x"),
        ("arXiv: 2401.00001v2", "https://arxiv.org/abs/2401.00001v2"),
        ("https://www.google.com/url?q=https://b.example/x&sa=D", "https://b.example/x"),
        ("https://www.google.com/url?url=https://b.example/x", "https://b.example/x"),
        ("https://www.google.com/url?sa=D", "https://www.google.com/url?sa=D"),
        ("https://a.example/s?q=https://b.example", "https://a.example/s?q=https://b.example"),
    ],
)
def test_a_source_is_opened_at_its_own_address(source: str, address: str) -> None:
    assert page_address(source) == address
