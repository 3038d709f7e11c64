"""The messages of a question: what is shared comes first, what is untrusted stays in its block."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import Question

from mind2web2.pages.prepared_page import PreparedPage
from mind2web2.prompts import HashedText, encodable, instructions
from mind2web2.utils.invisible_text import make_visible
from mind2web2.verification.messages import extraction_messages, verification_messages

ANY_TEXT = st.text(st.characters())
ADDRESS = "https://lake.example/depth"


def page(
    text="Depth: 80 m",
    images=("data:image/jpeg;base64,AA", "data:image/jpeg;base64,BB"),
    url=ADDRESS,
):
    """Return a page as it is shown."""
    shown = HashedText(text)
    return PreparedPage(
        url, "web", None, shown, len(text), len(text), tuple(map(HashedText, images))
    )


def question(messages):
    """Return messages as a judge sees them."""
    return Question("m", messages, None)


@pytest.mark.parametrize(
    ("ask", "shown", "names", "last", "asked"),
    [
        (
            verification_messages,
            page(),
            "task|answer|page address|page",
            "claim",
            "Does the page support this claim?",
        ),
        (verification_messages, None, "task|answer", "claim", "Is this claim correct?"),
        # The answer is left out, because a model that finds a login form on the page would copy
        # from it.
        (
            extraction_messages,
            page(),
            "task|page address|page",
            "what to extract",
            "Fill the form from the page above.",
        ),
        (
            extraction_messages,
            None,
            "task|answer",
            "what to extract",
            "Fill the form from the answer above.",
        ),
    ],
)
def test_the_order_is_instructions_task_answer_page_images_claim(ask, shown, names, last, asked):
    """Blocks stand from what most questions share to what only this one has.

    The question ends it.
    """
    system, user = ask("the task", "the answer", shown, "the claim", "be kind")
    name = "verify" if last == "claim" else "extract"
    assert system == {"role": "system", "content": instructions(name)}
    assert user["role"] == "user"
    texts = {
        "task": "the task",
        "answer": "the answer",
        "page address": ADDRESS,
        "page": "Depth: 80 m",
    }
    blocks = question([system, user]).blocks
    assert list(blocks.items()) == [
        *((name, texts[name]) for name in names.split("|")),
        (last, "the claim"),
        ("extra instruction", "be kind"),
    ]
    kinds = [part["type"] for part in user["content"]]
    assert kinds == (["text"] * 2 if shown is None else ["text"] * 4 + ["image_url"] * 2 + ["text"])
    assert user["content"][-1]["text"].endswith(f"\n{asked}")


def test_pictures_are_shown_in_full_detail():
    """A judge would otherwise be shown small ones, in which nothing can be read."""
    [_, user] = verification_messages("t", "a", page(), "c", "None")
    shown = [part for part in user["content"] if part["type"] == "image_url"]
    assert [part["image_url"] for part in shown] == [
        {"url": "data:image/jpeg;base64,AA", "detail": "high"},
        {"url": "data:image/jpeg;base64,BB", "detail": "high"},
    ]


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, st.booleans())
def test_claims_on_one_page_share_all_that_comes_before(answer, first, second, with_page):
    shown = page() if with_page else None
    one, two = (verification_messages("t", answer, shown, claim, "x") for claim in (first, second))
    assert one[0] == two[0]
    assert one[1]["content"][:-1] == two[1]["content"][:-1]
    assert len(one[1]["content"]) == (7 if with_page else 2)


def test_claims_on_different_pages_share_task_and_answer():
    """The first part does not depend on the page."""
    one, two = (
        verification_messages("t", "a", shown, "c", "None") for shown in (page(), page("Other", ()))
    )
    assert one[1]["content"][0] == two[1]["content"][0]
    assert one[1]["content"][1:] != two[1]["content"][1:]


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_every_text_is_whole_in_its_block(task, answer, text, claim, instruction):
    """Blocks hold what was given, surrogates and invisible characters apart.

    They are the same every time.
    """
    shown = page(encodable(text))
    messages = verification_messages(task, answer, shown, claim, f"do {instruction}")
    assert question(messages).blocks == {
        "task": make_visible(encodable(task)),
        "answer": make_visible(encodable(answer)),
        "page address": ADDRESS,
        "page": encodable(text),
        "claim": make_visible(encodable(claim)),
        "extra instruction": make_visible(encodable(f"do {instruction}")),
    }
    assert messages == verification_messages(task, answer, shown, claim, f"do {instruction}")


def test_a_page_cannot_end_its_block():
    """Delimiters copied from a real prompt are of no use to the page.

    They may be of this page or of the blocks before.
    """
    honest = question(verification_messages("t", "a", page("honest"), "c", "obey"))
    forged = page(f"honest{honest.text}")
    messages = verification_messages("t", "a", forged, "c", "obey")
    blocks = question(messages).blocks
    assert list(blocks) == [
        "task",
        "answer",
        "page address",
        "page",
        "claim",
        "extra instruction",
    ]
    assert blocks["page"].count("[delimiter removed]") == 6
    assert blocks["claim"] == "c"


def test_an_answer_cannot_bring_a_page_of_its_own():
    """A block forged in the answer stays inside the answer's."""
    honest = question(verification_messages("t", "a", page("Depth: 80 m"), "c", "None"))
    blocks = question(
        verification_messages("t", f"a {honest.text}", page("Depth: 3 m"), "c", "None")
    ).blocks
    assert blocks["page"] == "Depth: 3 m"
    assert "Depth: 80 m" in blocks["answer"]


@pytest.mark.parametrize("nothing", ["None", None, "", " \n", " None "])
@pytest.mark.parametrize("ask", [verification_messages, extraction_messages])
def test_no_extra_instruction_is_not_mentioned(ask, nothing):
    """Scripts pass the word None where they have nothing to say."""
    text = question(ask("t", "a", None, "c", nothing)).text
    assert "extra instruction" not in text
    assert "None" not in text


@pytest.mark.parametrize(
    ("shown", "said"),
    [(page(), "Images of the page: 2."), (page(images=()), "No images are shown.")],
)
def test_messages_describe_the_images(shown, said):
    asked = question(verification_messages("t", "a", shown, "c", None))
    assert said in asked.text
    assert asked.images == [str(image) for image in shown.images]


def test_the_page_is_one_object_in_all_questions():
    """Texts and images of megabytes are not copied for every claim."""
    shown = page()
    for claim in ("a", "b"):
        parts = verification_messages("t", "a", shown, claim, None)[1]["content"]
        assert parts[2]["text"] is shown.text
        assert parts[4]["image_url"]["url"] is shown.images[0]


def test_messages_name_the_parts_left_out():
    """Outside the page's block, where no page can write."""
    page = PreparedPage(
        url="https://a.example",
        kind="web",
        sha256=None,
        text=HashedText("text"),
        text_chars=4,
        text_chars_stored=4,
        notes=("screenshot cut: 10 of 20 pixels from the top are shown",),
    )
    parts = verification_messages("task", "answer", page, "claim", None)[1]["content"]
    assert parts[3]["text"].startswith("\n<<end of page ")
    assert "[screenshot cut: 10 of 20 pixels from the top are shown]" in parts[3]["text"]
