"""The rules of ``mind2web2 lint``: a number, a name, why it matters and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Rule:
    """A rule for eval scripts and rubric files.

    Args:
        rubric_cure: what to do in a rubric file, where scripts have another cure.
        is_error: no other rule can look at the file.
    """

    number: str
    name: str
    reason: str
    cure: str
    rubric_cure: str = ""
    is_error: bool = False

    def of_rubric_files(self) -> Rule:
        """Return the rule as it reads for rubric files."""
        return replace(self, cure=self.rubric_cure or self.cure)


_RULES = (
    Rule(
        "R101",
        "does not parse",
        "the task gives no result",
        "mend the line",
        is_error=True,
    ),
    Rule(
        "R102",
        "undefined name",
        "an answer that reaches the line gives no result",
        "import or define the name, or mend its spelling",
    ),
    Rule(
        "R103",
        "no evaluate_answer",
        "the file is no eval script",
        "write `async def evaluate_answer(client, answer, ...)`, or begin with `mind2web2 new`",
    ),
    Rule(
        "R104",
        "task is not the file's name",
        "the file's name says which task it is, so that a copy is easily taken for its original",
        "write the file's name, without its ending, as task",
    ),
    Rule(
        "R201",
        "claim about the world without sources",
        "the judge sees the answer alone, and an invented fact passes",
        "give sources=, or make the claim say that it is about the answer",
        rubric_cure="name a field of addresses as sources, or make the claim say that it is about the answer",
    ),
    Rule(
        "R202",
        "sources without a gate",
        "an answer that cites nothing gives an empty list, which is judged from the answer alone",
        "add a critical node for the addresses before: add_existence_node(x.urls, ...)",
    ),
    Rule(
        "R203",
        "no leaf opens a page",
        "the score says nothing about the cited pages",
        "judge at least the central claims against their pages",
    ),
    Rule(
        "R204",
        "verdict from the answer's wording",
        "a word in the answer is no fact, and the question's own text may hold it",
        "extract the value, and judge a claim or compare the value",
    ),
    Rule(
        "R205",
        "right answer in an extraction prompt",
        "the judge learns the expected value and finds it where it is not",
        "describe what to extract without naming the value",
    ),
    Rule(
        "R301",
        "no gate in the whole tree",
        "points are given for details of a wrong item",
        "make what everything else depends on critical, or the tree sequential",
        rubric_cure="write critical: true at what everything else depends on, or strategy: sequential",
    ),
    Rule(
        "R302",
        "non-critical child of a critical parent",
        "the script raises when it adds the node",
        "make the child critical, or the parent non-critical",
    ),
    Rule(
        "R303",
        "the same test in two leaves",
        "one fact counts twice",
        "remove one leaf, or test what its description says",
    ),
    Rule(
        "R304",
        "id repeated",
        "the second node is renamed, so that results and comparisons name it otherwise",
        "give each node an id of its own",
    ),
    Rule(
        "R305",
        "leaf never judged",
        "it counts as failed for every answer",
        "verify it, or add it by add_custom_node",
    ),
    Rule(
        "R306",
        "find all, without a bound",
        "the score depends on how many items the answer lists",
        "ask for a number of items, and take that many",
    ),
    Rule(
        "R401",
        "several facts in one claim",
        "one wrong fact fails the others, and the judge may overlook one",
        "make a leaf of each fact",
    ),
    Rule(
        "R402",
        "subjective or counting words",
        "judges disagree about them",
        "name the property that can be looked up, or count in the script",
        rubric_cure="name the property that can be looked up; count by a list with the number of items",
    ),
    Rule(
        "R403",
        "tag hidden in a description",
        "metrics by tag cannot see it",
        'give tags=["..."]',
        rubric_cure="write tags: [...]",
    ),
    Rule(
        "R404",
        "number where a range or a unit may stand",
        "a range or a unit is lost, or the extraction fails",
        "extract text, and compare it in a claim",
    ),
    Rule(
        "R405",
        "the script reads the clock",
        "its score differs from day to day",
        "write the date into the claim, or evaluate with --as_of",
    ),
)
RULES = {rule.number: rule for rule in _RULES}

SUBJECTIVE = re.compile(
    r"\b(good|nice|appropriate|suitable|reasonabl[ey]|relevant|comprehensive|sufficient(?:ly)?|adequate(?:ly)?"
    r"|well[- ](?:written|structured|organi[sz]ed|explained)|high[- ]quality|clearly|properly|meaningful"
    r"|interesting|useful|helpful|convincing|detailed)\b",
    re.IGNORECASE,
)
COUNTING = re.compile(
    r"\b(several|multiple|various|numerous|a number of)\b"
    r"|\bat least (?:\d+|two|three|four|five|six|ten) (?:different |distinct |separate |other )*"
    r"(?:examples?|items?|sources?|reasons?|citations?|references?|links?|pages?|points?|facts?)\b",
    re.IGNORECASE,
)
_VERBS = (
    r"(?:is|was|are|were|has|have|had|costs?|offers?|includes?|starts?|opens?|contains?|provides?|takes?"
    r"|leaves?|belongs?|supports?|features?|won|lives?|works?)"
)
_SECOND_FACT = re.compile(
    rf"(?:,|;)? (?:and|as well as|but also) (?:(?:it|they|he|she|that) )?(?:also )?{_VERBS}\b"
)
_SECOND_SENTENCE = re.compile(r"[a-z0-9}'\")][.;] +[A-Z{'\"]")
HIDDEN_TAG = re.compile(r"^\s*(\[[A-Za-z][\w /-]{1,30}\])")
ALL_OF_THEM = re.compile(
    r"\b(?:find|list|identify|name|give|extract|provide|collect)\s+(?:me\s+)?(?:all|every)\b"
    r"(?! of the (?:two|three))",
    re.IGNORECASE,
)
RANGE_OR_UNIT = re.compile(
    r"\brange\b|\bunits?\b|\bcurrency\b|\bapprox|\bfrom .{1,20} to\b|\d\s*[-\u2013]\s*\d"
    r"|\d\s?(?:km|kg|m|cm|GB|TB|miles?|hours?|USD|EUR|%)\b|[$\u20ac\u00a3]\s?\d",
    re.IGNORECASE,
)
# A claim about the answer itself, or about two values, needs no page.
ABOUT_THE_ANSWER = re.compile(
    r"\b(answer|response|report|text|author|same|match(?:es)?|equals?|equivalent|identical|refers?|corresponds?"
    r"|consistent|states?|mentions?|says)\b",
    re.IGNORECASE,
)


def has_several_facts(claim: str) -> bool:
    """Tell whether a claim seems to state more than one fact."""
    return bool(_SECOND_FACT.search(claim) or _SECOND_SENTENCE.search(claim))


def unclear_word(claim: str) -> str | None:
    """Return the first subjective or counting word of a claim."""
    found = SUBJECTIVE.search(claim) or COUNTING.search(claim)
    return found[0] if found else None
