"""A new task: a rubric file or script, with one perfect answer.

The task passes its rehearsal from the start.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from mind2web2.plugin import (
    ReadRubric,
    UsageError,
    YamlFileError,
    script_of,
    write_whole,
)
from mind2web2_authoring.cases import PERFECT, CaseHeader, case_text

QUESTION = (
    "Which library in Ottermoss is the oldest, and in which year did it open? Name two of its "
    "branches with their street addresses. Link a page for each fact."
)
_RUBRIC = """\
# The rubric of one task: replace question, fields and nodes by your own, and rehearse after each step.
# docs/rubric-files.md explains every key; `mind2web2 rehearse --show_tree` prints the tree.
task: {task}
{question}
# What the judge reads from the answer, with the addresses that the answer cites for it.
extract:
  library:
    ask: the library that the answer calls the oldest
    fields:
      name: its name
      opened: the year in which it opened
      urls: the addresses that the answer cites for it
  branches:
    ask: the branches that the answer names, in its order
    list: 2                     # further ones do not count, and the leaves of missing ones fail
    fields:
      name: its name
      address: its street address
      urls: the addresses that the answer cites for this branch

root:
  children:
    - id: library
      desc: The oldest library is named and described rightly
      children:
        - id: library_given     # a gate: without a name and a page, the rest of this part counts 0
          desc: A library and a page are given
          critical: true
          present: [library.name, library.urls]
        - id: library_oldest
          desc: A cited page says that it is the oldest
          critical: true
          claim: "{{library.name}} is the oldest library in Ottermoss."
          sources: library.urls
        - id: library_opened
          desc: A cited page supports the year
          claim: "{{library.name}} opened in {{library.opened}}."
          sources: library.urls
          instruction: The year of the foundation stone is not the year of the opening.
    - id: branch_{{number}}
      desc: Branch {{number}} is one of its branches, at the right address
      for_each: branches
      children:
        - id: branch_{{number}}_given
          desc: Branch {{number}} has a name and a page, and is none of the earlier ones
          critical: true
          present: [item.name, item.urls]
          distinct: item.name
        - id: branch_{{number}}_exists
          desc: A cited page says that it is a branch of the library
          critical: true
          claim: "'{{item.name}}' is a branch of the public library in Ottermoss."
          sources: item.urls
        - id: branch_{{number}}_address
          desc: A cited page supports its address
          claim: "The street address of '{{item.name}}' is {{item.address}}."
          sources: item.urls
"""
_EXTRACT = {
    "library": {
        "name": "Ottermoss Public Library",
        "opened": "1911",
        "urls": ["https://library.example/history"],
    },
    "branches": [
        {
            "name": "Harbour branch",
            "address": "Quay 4",
            "urls": ["https://library.example/harbour"],
        },
        {
            "name": "Mill branch",
            "address": "Mill Lane 9",
            "urls": ["https://library.example/mill"],
        },
    ],
}
_ANSWER = """\
The oldest library in Ottermoss is the **Ottermoss Public Library**, which opened in 1911
([history](https://library.example/history)). Two of its branches:

- **Harbour branch**, Quay 4 ([page](https://library.example/harbour))
- **Mill branch**, Mill Lane 9 ([page](https://library.example/mill))
"""


def new_task(
    task_id: str,
    scripts: Path,
    cases: Path,
    *,
    question: str | None = None,
    as_script: bool = False,
) -> tuple[Path, Path]:
    """Write a task's rubric file or script and its perfect answer, and return both paths.

    Args:
        scripts: the version folder.
        cases: the folder of the task's cases.

    Raises:
        UsageError: one of the files is there already.
    """
    asked = QUESTION if question is None else question
    text = _RUBRIC.format(task=task_id, question=_question(asked))
    script = scripts / f"{task_id}{'.py' if as_script else '.yaml'}"
    perfect = cases / f"{PERFECT}.md"
    versions = [scripts, *scripts.parent.glob("*/")]
    others = [path for folder in versions for path in folder.glob(f"{task_id}.*")]
    if taken := next((path for path in (*others, perfect) if path.exists()), None):
        raise UsageError(f"{taken} is there already: choose another task id, or move it away")
    try:
        rubric = ReadRubric.parsed(text.encode(), script)
    except YamlFileError as error:
        fault = error.problems[0]
        raise UsageError(f"cannot make task {task_id!r}: {fault.field}: {fault.message}") from error
    scripts.mkdir(parents=True, exist_ok=True)
    cases.mkdir(parents=True, exist_ok=True)
    write_whole(script, script_of(rubric) if as_script else text)
    note = "the answer that deserves 1: replace it by your own, with what the judge reads from it"
    write_whole(perfect, case_text(CaseHeader(expect=1.0, extract=_EXTRACT), _ANSWER, note))
    return script, perfect


def _question(text: str) -> str:
    """Return the key with its value, folded over several lines."""
    written: str = yaml.safe_dump({"question": text}, allow_unicode=True, width=100)
    return written.rstrip("\n")
