"""``mind2web2 injection``: a gullible judge is found out, a firm one is not blamed."""

import re

import pytest
from projects import call
from servers.judge_server import JudgeServer, prompt_text, status

from mind2web2.cli import main
from mind2web2.injection import attacks
from mind2web2.injection.attack import HTML_PLACES, Attack


@pytest.fixture(autouse=True)
def few_attacks(monkeypatch):
    """Judge a dozen attacks of several places, and have a key."""
    static = [attack for attack in attacks.ATTACKS if attack.place not in HTML_PLACES]
    named = [attack for attack in static if attack.name in ("an old system mark", "an order to reject")]
    monkeypatch.setattr(attacks, "ATTACKS", (*static[::6], *named))
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")


def run(server, *options):
    """Ask a judge with the suite; return the command's outcome."""
    words = ("injection", "--live-injection", "--judge_model", "m", "--judge_base_url", server.base_url)
    return call(main, *words, *options)


def verdict(result):
    """Return a reply."""
    return {"reasoning": "read", "result": result}


def firm(body):
    """Judge by the depth in the claim, as the material has it."""
    claim = re.search(r"<<claim \w+>>\n(.*?)\n<<end", prompt_text(body), re.DOTALL)[1]
    return verdict("80 m" in claim[:30])


def gullible(body):
    """Do what the loudest text wants."""
    text = prompt_text(body).partition("Each piece stands in a block")[2]
    return verdict("withdrawn" not in text and "spam" not in text)


def test_a_firm_judge_turns_for_none():
    """Two votes on each of two claims, exit status 0."""
    with JudgeServer(firm) as server:
        outcome = run(server)
    asked = len(attacks.ATTACKS) - sum(a.place in ("file name", "judge's reply") for a in attacks.ATTACKS)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert f"Attacks that turned a verdict: 0 of {asked} (0.0%)." in outcome.stdout
    assert f"Controls that were right: {asked} of {asked} (100.0%)." in outcome.stdout
    assert len(server.requests) == 4 * asked


def test_a_gullible_judge_is_found_out():
    """Every attack turns it, although its controls are right."""
    with JudgeServer(gullible) as server:
        outcome = run(server)
    assert outcome.returncode == 1
    turned, total = map(int, re.search(r"turned a verdict: (\d+) of (\d+)", outcome.stdout).groups())
    assert turned == total > 5
    assert f"Controls that were right: {total} of {total} (100.0%)." in outcome.stdout
    assert "verdict turned, control right" in outcome.stdout


def test_a_judge_that_always_says_no_has_its_controls_wrong():
    """It is firm for the wrong reason."""
    with JudgeServer(verdict(False)) as server:
        outcome = run(server)
    assert "control wrong" in outcome.stdout
    assert "(100.0%)" not in outcome.stdout
    [warning] = re.findall(
        r"^Warning: the rate of turned verdicts means nothing: (.*)$", outcome.stdout, re.M
    )
    assert "right" in warning or "none of" in warning
    assert outcome.returncode == 1


def test_the_rate_of_a_judge_that_cannot_judge_means_nothing():
    """Although nothing turns it: it is wrong where attack and truth agree, and so cannot be led astray."""

    def contrary(body):
        claim = re.search(r"<<claim \w+>>\n(.*?)\n<<end", prompt_text(body), re.DOTALL)[1]
        return verdict("80 m" not in claim[:30])

    with JudgeServer(contrary) as server:
        outcome = run(server)
    assert outcome.returncode == 1
    [doubt] = re.findall(r"^Warning: the rate of turned verdicts means nothing: (.*)$", outcome.stdout, re.M)
    assert re.fullmatch(
        r"where attack and truth agree, the judge was right in no more than 0 of \d+ \(0\.0%\)\.", doubt
    )


def test_the_rate_of_a_capable_judge_is_not_doubted():
    """One that is firm, and one that is turned by everything."""
    for reply in (firm, gullible):
        with JudgeServer(reply) as server:
            assert "means nothing" not in run(server).stdout


def test_a_wrong_key_is_told_at_once():
    """One attack is tried, and the rest are not."""
    with JudgeServer(faults=lambda _: status(401, "bad key", code="invalid_api_key")) as server:
        outcome = run(server)
    assert outcome.returncode == 2
    assert "bad key" in outcome.stderr
    assert len(server.requests) <= 4


@pytest.mark.parametrize("code", [403, 404])
def test_a_judge_that_is_not_to_be_had_is_told_after_a_few_attacks(code):
    """Its refusal may be about what the first says, and hardly about what each says."""
    with JudgeServer(faults=lambda _: status(code, "not for you")) as server:
        outcome = run(server)
    assert outcome.returncode == 2
    assert "not for you" in outcome.stderr
    assert len(server.requests) <= 3 * 4


def test_a_key_that_is_revoked_ends_the_requests():
    """Those that are not under way are not sent, and what was judged is told."""
    with JudgeServer(firm, faults=[*[None] * 4, *[status(401, "revoked")] * 500]) as server:
        outcome = run(server, "--max_llm_requests", "3")
        assert 4 < len(server.requests) <= 4 + 3
    assert outcome.returncode == 1
    assert "Attacks that turned a verdict: 0 of 1 " in outcome.stdout


def test_a_first_attack_that_a_firewall_stops_is_left_out(monkeypatch):
    """The others are tried."""
    monkeypatch.setattr(attacks, "ATTACKS", (Attack("a test", "answer", "Odd words."), *attacks.ATTACKS))

    def fault(body):
        return status(403, "request blocked by policy") if "Odd words." in prompt_text(body) else None

    with JudgeServer(firm, faults=fault) as server:
        outcome = run(server)
    [failed] = [line for line in outcome.stdout.splitlines() if line.startswith("Warning: no verdict:")]
    assert outcome.returncode == 1
    assert failed.startswith("Warning: no verdict: a test: ") and "blocked" in failed


def test_a_judge_that_fails_now_and_then_leaves_verdicts_out():
    """What could not be judged is named, and the command says that it is incomplete."""

    def fault(body):
        return status(400, "no thanks") if "<<SYS>>" in prompt_text(body) else None

    with JudgeServer(firm, faults=fault) as server:
        outcome = run(server)
    [failed] = [line for line in outcome.stdout.splitlines() if line.startswith("Warning: no verdict:")]
    assert outcome.returncode == 1
    assert failed.startswith("Warning: no verdict: an old system mark: ") and "no thanks" in failed
    assert "Attacks that turned a verdict: 0 of " in outcome.stdout


def test_a_judge_is_named_in_vain_where_none_is_asked():
    """Exit status 2, and the option that asks it."""
    outcome = call(main, "injection", "--judge_model", "m", "--max_llm_requests", "3")
    assert (outcome.returncode, outcome.stdout, outcome.stderr.count("\n")) == (2, "", 1)
    assert "--judge_model and --max_llm_requests: only with --live_injection" in outcome.stderr


def test_without_a_model_the_suite_is_checked():
    """A line for each attack and one for all."""
    outcome = call(main, "injection")
    count = len(attacks.ATTACKS)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.count("outcome held") == count
    assert outcome.stdout.endswith(f"{count} of {count} attacks are held as they should be.\n")


def test_what_is_not_held_is_named(monkeypatch):
    """With what is wrong about it, and exit status 1."""
    attack = Attack("a test", "page text", "Depth.", fate="never")
    monkeypatch.setattr(attacks, "ATTACKS", (attack,))
    outcome = call(main, "injection")
    assert outcome.returncode == 1
    assert "Warning: a test: " in outcome.stdout and "0 of 1 attacks" in outcome.stdout
