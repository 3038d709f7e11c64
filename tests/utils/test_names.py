"""Names: which may become folders, and their order."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind2web2.errors import UsageError
from mind2web2.utils.text import MAX_NAME_BYTES, check_name, name_list, natural_key, stamp_now


@pytest.mark.parametrize(
    "name",
    [
        "",
        "  ",
        "..",
        ".hidden",
        "a/../b",
        "a..b",
        "a/b",
        "a\\b",
        "a\0b",
        "a\nb",
        "\udc80",
        "x" * 201,
        "é" * 101,
    ],
)
def test_unsafe_names_are_refused_in_one_line(name):
    """A name that could lead elsewhere, hide or break a line is no name of a folder."""
    with pytest.raises(UsageError, match=r"^agent ") as caught:
        check_name("agent", name)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["gpt-4.1", "Zürich task", "日本", "a" * MAX_NAME_BYTES, "answer_1.md"])
def test_plain_names_pass(name):
    """Dots inside, spaces and other scripts are fine."""
    assert check_name("task", name) == name


def test_numbers_in_names_are_ordered_by_value():
    """The tenth answer comes after the second one."""
    names = ["answer_10.md", "b", "answer_2.md", "10", "09", "9" * 5000, "answer_1.md", "a"]
    expected = ["09", "10", "9" * 5000, "a", "answer_1.md", "answer_2.md", "answer_10.md", "b"]
    assert sorted(names, key=natural_key) == expected


@given(st.lists(st.text(max_size=8), max_size=6))
def test_any_names_have_one_order(names):
    """Odd digits included, every name can be compared and no two share a key."""
    backwards = names[::-1]
    assert sorted(names, key=natural_key) == sorted(backwards, key=natural_key)
    assert len({natural_key(name) for name in names}) == len(set(names))


def test_long_lists_are_shortened():
    """A message stays one readable line however many names there are."""
    assert (
        name_list(f"t{number}" for number in range(12)) == "t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more"
    )
    assert name_list([]) == "none"


def test_a_stamp_sorts_by_time():
    """A stamp has the published form, in which text order is time order."""
    assert re.fullmatch(r"20[0-9]{6}_[0-9]{6}", stamp_now())
