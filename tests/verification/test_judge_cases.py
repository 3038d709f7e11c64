"""The labelled cases: each leads to a prompt that a reader can check, without a model."""

from collections import Counter

from judge_cases import PROMPTS, load_cases, load_pages, rendered
from scripted_judge import Question

from mind2web2.llm_client.messages import checked_messages
from mind2web2.prompts.flags import flags_of
from mind2web2.verification.messages import quotable
from mind2web2.verification.quotes import find_quote

CASES = load_cases()
TASK, ANSWER, PAGES = load_pages()


def test_there_are_cases_of_every_kind_half_of_the_claims_false():
    claims = [case for case in CASES if isinstance(case.expected, bool)]
    assert (len(claims) >= 200, len(CASES) - len(claims) >= 40) == (True, True)
    assert Counter(case.expected for case in claims) == {
        True: len(claims) // 2,
        False: len(claims) // 2,
    }
    assert len({str(case.messages) for case in CASES}) == len(CASES)
    assert len({case.category for case in CASES}) >= 30


def test_cases_lead_to_prompts_that_show_all_they_need():
    """Task, page or answer, and the question.

    No block more, so that nothing can be copied from it.
    """
    for case in CASES:
        check_prompt(case)


def check_prompt(case):
    """Check the prompt of one case."""
    checked_messages(case.messages)
    shown = Question("m", case.messages, case.template)
    is_claim = case.template is None
    page = PAGES.get(case.page)
    of_page = [] if page is None else ["page address", "page"]
    of_answer = ["answer"] if is_claim or page is None else []
    names = ["task", *of_answer, *of_page, "claim" if is_claim else "what to extract"]
    assert [name for name in shown.blocks if name != "extra instruction"] == names, case.name
    if page is not None:
        assert shown.images == [str(image) for image in page.images]
        assert ("No images are shown." in shown.text) is (not page.images)
    if is_claim:
        question = "Is this claim correct?" if page is None else "Does the page support this claim?"
        assert shown.text.endswith(f"\n{question}")
        assert not case.quote or find_quote(case.quote, quotable(ANSWER, page)).match == "found"
    else:
        # The right reply has to fit the form.
        assert (
            case.template.model_validate(case.expected, strict=True).model_dump() == case.expected
        )


def test_the_prompts_can_be_read_in_a_file():
    """The file is written again by: uv run python tests/judge_cases.py."""
    assert PROMPTS.read_text(encoding="utf-8") == rendered()


def test_a_page_that_steers_is_flagged():
    """The cases have one, and only that one."""
    assert {name for name, page in PAGES.items() if flags_of(page.text)} == {"steered"}
