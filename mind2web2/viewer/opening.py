"""The sentence that opens a report: what the scores come to, in words; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mind2web2.utils.text import counted
from mind2web2.viewer.keys import Json

# Returns the tests of two agents, as ``compare --json`` prints them.
Comparison = Callable[[str, str], Json]
_LEVEL_P = 0.05


def opening_sentence(agents: Sequence[Json], comparison: Comparison) -> str | None:
    """Return one sentence on the best agents of an overview; ``None`` where none has a score.

    Args:
        agents: as the overview has them.
    """
    scored = [agent for agent in agents if agent["metrics"]["num_tasks"]]
    best = sorted(scored, key=lambda agent: -agent["metrics"]["avg_score"])
    if not best:
        return None
    if len(best) == 1:
        return _of_one(best[0])
    among = f"Of {len(best)} agents, " if len(best) > 2 else ""
    return among + _of_two(best[0], best[1], comparison(best[0]["name"], best[1]["name"]))


def _of_one(agent: Json) -> str:
    metrics = agent["metrics"]
    sure = ""
    if "avg_score" in agent["intervals"]:
        low, high = agent["intervals"]["avg_score"]
        sure = f" (95% interval {_percent(low)} to {_percent(high)})"
    runs = f", {metrics['num_runs']} runs each" if metrics["num_runs"] > 1 else ""
    return (
        f"{agent['name']} gets {_percent(metrics['avg_score'])} of the points{sure} and solves "
        f"{_percent(metrics['success_rate'])} of its runs completely: "
        f"{counted(metrics['num_tasks'], 'task')}{runs}."
    )


def _of_two(best: Json, second: Json, tests: Json) -> str:
    if "reason" in tests:
        scores = ", ".join(
            f"{one['name']} {_percent(one['metrics']['avg_score'])}" for one in (best, second)
        )
        return f"{scores} of the points; they cannot be compared: {tests['reason']}."
    [pair] = tests["metrics"]["avg_score"]["differences"]
    names = [best["name"], second["name"]]
    shares = [pair["first"], pair["second"]]
    # Over the tasks that both share, the other one may be ahead.
    gap = pair["first"] - pair["second"]
    if pair["low"] is None:
        limits = []
    else:
        limits = sorted((-pair["low"], -pair["high"]))
    if gap < 0:
        names.reverse()
        shares.reverse()
        gap = -gap
        limits = sorted(-limit for limit in limits)
    p_value = pair["p_value"]
    is_clear = p_value is not None and p_value < _LEVEL_P and limits and limits[0] > 0
    verb = f"is better than {names[1]}" if is_clear else f"and {names[1]} are not told apart"
    if limits:
        sure = f" ({_points(limits[0])} to {_points(limits[1])})"
    else:
        sure = ""
    chance = "" if p_value is None else f", p {p_value:.2g}"
    return (
        f"{names[0]} {verb}: {_percent(shares[0])} against {_percent(shares[1])} of the points, "
        "difference "
        f"{_points(gap)} points{sure}, {counted(tests['num_tasks'], 'task')}{chance}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _points(share: float) -> str:
    return f"{100 * share:.0f}"
