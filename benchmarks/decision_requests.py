"""Requests and dollars for the claims on one page: a strong judge alone, and a decision model before it.

Judges on this machine report the tokens that a page of ``PAGE_TOKENS`` takes; prices are those of the list.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from measuring import title
from projects import Project, call, read_json
from servers.decision_server import DecisionServer
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main

FIRST, STRONG = "gpt-6-luna", "gpt-5"
PAGE, PAGE_TOKENS, QUESTION_TOKENS, REPLY_TOKENS = (
    "https://lake.example/",
    10_000,
    200,
    300,
)
CLAIMS = (1, 10, 40)
# Every fifth claim is in doubt.
DOUBT_EVERY = 5
_SCRIPT = """
for number in range({claims}):
    leaf = evaluator.add_leaf(f"leaf_{{number}}", "")
    await evaluator.verify(f"The lake has island {{number}}.", leaf, {page!r})
return evaluator.get_summary()
"""


def main() -> None:
    """Print requests and dollars for each number of claims."""
    title(f"Claims on a page of {PAGE_TOKENS:,} tokens: {STRONG} alone, two votes each")
    title(
        f"{'claims':>8} {'judges':<34} {'requests':>8} {'tokens in':>10} {'price':>8}"
    )
    for claims in CLAIMS:
        alone = _usage(claims, None)
        _show(claims, f"{STRONG} alone", alone, alone)
        for name, every in (
            (f"{FIRST} first, sure of all", 0),
            (f"{FIRST} first, in doubt of a fifth", DOUBT_EVERY),
        ):
            _show(claims, name, _usage(claims, every), alone)


def _usage(claims: int, doubt_every: int | None) -> dict[str, float]:
    """Return what a run used; ``None`` asks the strong judge alone."""

    def probability(claim: str) -> float:
        number = int(claim.removesuffix(".").rpartition(" ")[2])
        return 0.6 if doubt_every and number % doubt_every == 0 else 0.98

    reply = {"reasoning": "r", "result": True, "quote": "deep and cold"}
    strong = JudgeServer(
        reply,
        input_tokens=PAGE_TOKENS + QUESTION_TOKENS,
        cached_tokens=0,
        output_tokens=REPLY_TOKENS,
    )
    first = DecisionServer(
        probability, tokens=PAGE_TOKENS, question_tokens=QUESTION_TOKENS
    )
    with tempfile.TemporaryDirectory() as folder, strong, first:
        os.chdir(folder)
        project = Project(Path(folder))
        project.add_answer()
        project.add_script_body(_SCRIPT.format(claims=claims, page=PAGE))
        project.cache().put_web(PAGE, "The lake is deep and cold. " * 1500, None)
        judges = ["--judge_model", STRONG]
        if doubt_every is not None:
            cascade = f"decisions:{FIRST}@{first.base_url},{STRONG}"
            judges = ["--judge_cascade", cascade, "--judge_doubt", "signs"]
        server = ("--judge_base_url", strong.base_url)
        done = call(evaluate_main, "bot", *server, *judges)
        assert done.returncode == 0, done.stdout + done.stderr
        asked: dict[str, float] = read_json(project.results / "usage.json")[
            "newest_run"
        ]["asked"]
        os.chdir("/")
    return asked


def _show(
    claims: int, name: str, used: dict[str, float], alone: dict[str, float]
) -> None:
    price = used["cost_usd"] / alone["cost_usd"]
    sys.stdout.write(
        f"{claims:>8} {name:<34} {used['requests']:>8} {used['input_tokens']:>10,} {price:>8.1%}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    os.environ["OPENAI_API_KEY"] = "key"
    main()
