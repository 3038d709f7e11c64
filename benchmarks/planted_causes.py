"""Plant changes between two agents, and count how often ``compare --why`` names what was planted.

Each round takes a script of its own: one of ``chain.py``, or of the folders named. A judge answers
by a hash of claim and page, and fills forms by a hash of the answer. Most rounds plant one change:
an edit of the script, another page, a judge with other errors, or another answer. Every tenth
plants all of them, and every tenth none. The last figure is the time of one edited claim over 390
answers.

    OPENAI_API_KEY=x PYTHONPATH=tests uv run python benchmarks/planted_causes.py [ROUNDS [FOLDER]]
"""

import json
import os
import random
import re
import shutil
import sys
import tempfile
import zlib
from contextlib import chdir
from pathlib import Path
from typing import Any

from chain import END, HEADER, SCRIPTS
from measuring import seconds, show, title
from planted_changes import planted
from projects import block_in, call, claim_in
from script_checks import plausible
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.cli import evaluate_main, main
from mind2web2.pages.cache import CacheFileSys
from mind2web2.results.stored_results import latest_results
from mind2web2_trust.why.shares import Cause

ROUNDS = 200
CAUSES: list[Cause] = ["rubric", "pages", "judge", "answers"]
# Where a claim begins in a call of a script.
CLAIM = re.compile(r"""((?:verify|add_claim)\(\s*(?:claim=)?f?["'])""")


def reply(body: dict[str, Any]) -> Any:
    """Return the verdict or the values that the hash of a question gives."""
    text = prompt_text(body)
    claim = claim_in(text)
    if claim is None:
        form = body["response_format"]["json_schema"]["schema"]
        answer = block_in(text, "answer") or ""
        filled = json.dumps(plausible(form))
        return re.sub(r"(name \w)", rf"\g<1>{zlib.crc32(answer.encode()) % 7}", filled)
    seen = f"{claim}{block_in(text, 'page')}"
    verdict = zlib.crc32(seen.encode()) % 5 > 1
    is_wrong = body["model"] == "judge-2" and zlib.crc32(f"2{claim}".encode()) % 3 == 0
    return {"reasoning": "read", "result": verdict ^ is_wrong, "quote": ""}


def evaluate(agent: str, *words: str) -> None:
    """Evaluate an agent's answers."""
    call(evaluate_main, agent, "--no_capture", "--answer_timeout", "15", *words)


def plant(cause: Cause, draws: random.Random) -> list[str]:
    """Change what the second agent is judged by; return options for its evaluation."""
    if cause == "rubric":
        script = Path("eval_scripts/v1/t.py").read_text()
        places = [found.end() for found in CLAIM.finditer(script)]
        place = draws.choice(places) if places else 0
        edited = f"{script[:place]}Indeed, {script[place:]}" if places else f"{script}\n# v2\n"
        Path("eval_scripts/v2").mkdir()
        Path("eval_scripts/v2/t.py").write_text(edited)
        return ["--eval_version", "v2"]
    if cause == "pages":
        cache = CacheFileSys("cache/second/t")
        for url in judged_pages("first")[:1]:
            cache.put_web(url, f"Another page {draws.random()}.", None)
    if cause == "answers":
        for path in Path("answers/second/t").iterdir():
            path.write_text(f"{path.read_text()} More is known since {draws.randint(1990, 2020)}.")
    return ["--judge_model", "judge-2"] if cause == "judge" else []


def judged_pages(agent: str) -> list[str]:
    """Return the URLs that an agent's results looked up."""
    return sorted(
        {
            url
            for _, _, found in latest_results(Path("eval_results"), agent)
            if found.content.provenance is not None
            for url in found.content.provenance.pages
        }
    )


def prepare(script: str) -> bool:
    """Write a project with one script and its pages; return whether it can be judged."""
    for folder in ("answers/first/t", "eval_scripts/v1"):
        Path(folder).mkdir(parents=True)
    Path("eval_scripts/v1/t.py").write_text(script)
    for run in (1, 2):
        text = f"Answer {run} cites https://www.example.org/page/{run}."
        Path(f"answers/first/t/answer_{run}.md").write_text(text)
    evaluate("first", "--eval_version", "v1", "--judge_model", "judge-1")
    cache = CacheFileSys("cache/first/t")
    for url in judged_pages("first"):
        cache.put_web(url, f"The page {url}.", None)
    evaluate("first", "--eval_version", "v1", "--judge_model", "judge-1")
    for folder in filter(Path.is_dir, map(Path, ("answers/first", "cache/first"))):
        shutil.copytree(folder, folder.with_name("second"))
    return len(list(latest_results(Path("eval_results"), "first"))) == 2


def one_round(causes: list[Cause], script: str, draws: random.Random) -> tuple[bool, bool] | None:
    """Return whether the causes were named and whether the shares sum; ``None`` without a score."""
    if not prepare(script):
        return None
    words = ["--eval_version", "v1", "--judge_model", "judge-1"]
    present = [cause for cause in causes if cause != "pages" or judged_pages("first")]
    for cause in present:
        words = [*words, *plant(cause, draws)]
    options = dict(zip(words[::2], words[1::2], strict=True))
    evaluate("second", *(word for pair in options.items() for word in pair))
    run = call(main, "compare", "first", "second", "--why", "--ask", "--json")
    if run.returncode == 2:
        return None
    found = json.loads(run.stdout)
    shares = {share["cause"]: share["share"] for share in found["shares"]}
    is_sum = None not in shares.values() and abs(sum(shares.values()) - found["difference"]) < 1e-9
    largest = max(shares, key=lambda cause: abs(shares[cause] or 0.0), default=None)
    for reason in found["gone"]:
        title(f"  not evaluated again: {reason}")
    is_named = set(shares) <= set(present) and (len(present) != 1 or [largest] == present)
    return is_named, is_sum


def edited_claim(answers: int) -> None:
    """Show the time for one edited claim in 130 tasks with three answers each."""
    tasks = [f"t{number}" for number in range(answers // 3)]
    folder = Path(tempfile.mkdtemp())
    with chdir(folder), planted(folder, os.environ.__setitem__, tasks) as found:
        for task in tasks:
            source = Path(f"answers/bot/{task}/answer_1.md").read_text()
            for run in (2, 3):
                Path(f"answers/bot/{task}/answer_{run}.md").write_text(f"{source} Run {run}.")
        found.evaluate("bot")
        shutil.copytree("eval_scripts/v1", "eval_scripts/v2")
        for task in tasks:
            found.script(task, "v2", rounding={"length": " or so"})
        words = ("compare", "bot", "--why", "--with", "eval_version=v2")
        show(f"one edited claim, {answers} answers, no reply", seconds(lambda: call(main, *words)))
        asked = len(found.judge.asked)
        show("  the same, asked for", seconds(lambda: call(main, *words, "--ask")))
        others = sum(" or so" not in claim for claim in found.judge.asked[asked:])
        title(f"  {len(found.judge.asked) - asked} requests, {others} of them about other claims")
        show("  the same, from replies", seconds(lambda: call(main, *words)), 60.0)
    shutil.rmtree(folder)


def measure() -> None:
    """Run the rounds and print the figures."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    scripts = [
        HEADER.replace("STRATEGY", strategy) + body + END for strategy, body in SCRIPTS.values()
    ]
    for folder in sys.argv[2:]:
        scripts += [path.read_text() for path in sorted(Path(folder).glob("*.py"))]
    draws = random.Random(1)
    counts = {kind: [0, 0, 0] for kind in ("one", "all", "none")}
    with JudgeServer(reply=reply) as server:
        os.environ["OPENAI_BASE_URL"] = server.base_url
        done = 0
        for number in range(10 * rounds):
            kind = {0: "none", 1: "all"}.get(number % 10, "one")
            causes = {"none": [], "all": CAUSES, "one": [CAUSES[number % 4]]}[kind]
            script = scripts[number * 7 % len(scripts)]
            with tempfile.TemporaryDirectory() as folder, chdir(folder):
                outcome = one_round(list(causes), script, draws)
            if outcome is None:
                continue
            count = counts[kind]
            count[0] += 1
            count[1] += outcome[0]
            count[2] += outcome[1]
            done += kind == "one"
            if done % 20 == 0:
                title(f"  {done} of {rounds}")
            if outcome != (True, True):
                title(f"  round {number}: {kind} {causes}, named {outcome[0]}, sums {outcome[1]}")
            if done >= rounds:
                break
    for kind, (total, named, sums) in counts.items():
        title(f"planted {kind}: {total} rounds, named {named}, shares sum {sums}")
    edited_claim(390)


if __name__ == "__main__":
    measure()
