"""The questions of a check."""

from typing import Any

from passes_by_policy import result_by_policy

from mind2web2.scripts.isolation.messages import ScriptCall, SentRequest, SentTemplate
from mind2web2.utils.files import file_sha256
from mind2web2.verification.run_questions import AskedClaim, AskedForm
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
