"""What each leaf of a rubric did in all results of its task."""

from viewer.made_results import leaf, result

from mind2web2.analysis.leaf_report import JudgedResult, task_report
from mind2web2.results.result_file import ResultFile


def judged(agent, leaves, **changed):
    """Return a result of an agent with these leaves."""
    return JudgedResult(agent, ResultFile.of(result(agent, "answer_1", leaves) | changed))


def test_conspicuous_leaves_are_marked():
    """The depth varies, and one leaf passes where the others fail."""
    found = []
    for agent in ("bot", "crawler"):
        for number in range(6):
            deep = number % 2 == 1 or agent == "crawler"
            leaves = [
                leaf("name", "It is a lake.", passed=True),
                leaf("depth", "It is deep.", passed=deep),
                leaf("area", "It is large.", passed=deep),
                leaf("turned", "It is shallow.", passed=not deep),
                {**leaf("idle", "It is cold.", passed=False), "status": "skipped"},
            ]
            found.append(judged(agent, leaves))
    rows = {row.name: row for row in task_report("lake", found, {}).leaves}
    assert rows["turned"].notes == ("passes where the rest fails",)
    assert (rows["turned"].correlation, rows["turned"].by_agent) == (-1, {"bot": 0.5, "crawler": 0})
    assert rows["idle"].notes == ("never reached",)
    assert rows["name"].notes == ("always passed",)
    assert rows["depth"].notes == ()
    assert (rows["depth"].passed, rows["depth"].failed) == (9, 3)


def test_too_few_results_mark_no_leaf():
    found = [judged("bot", [leaf("cold", "It is cold.")], judge_model=f"j-{n}") for n in (1, 2)]
    report = task_report("pond", found, {})
    assert report.too_few
    assert report.leaves[0].notes == ()
    assert report.warning == "results of different judges are taken together: j-1 (1), j-2 (1)"
