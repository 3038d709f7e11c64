"""A metric as sums over tasks, so that tasks can be resampled; pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from mind2web2.intervals import Interval, Limits, Statistic, bootstrap_intervals


@dataclass(frozen=True, slots=True)
class TaskSums:
    """A metric as a statistic of sums over tasks.

    Args:
        columns: one a sum, at least two: what each task adds to it.
        limits: the least and the greatest value that a task can have.
    """

    tasks: tuple[str, ...]
    columns: tuple[tuple[float, ...], ...]
    statistic: Statistic
    limits: Limits

    @property
    def value(self) -> float:
        """Return the metric over all the tasks."""
        return self.statistic([sum(column) for column in self.columns])

    def minus(self, other: TaskSums) -> TaskSums:
        """Return the difference to another metric over the same tasks."""
        width = len(self.columns)
        limits = None
        if self.limits is not None and other.limits is not None:
            limits = (self.limits[0] - other.limits[1], self.limits[1] - other.limits[0])

        def difference(sums: Sequence[float]) -> float:
            return self.statistic(sums[:width]) - other.statistic(sums[width:])

        return TaskSums(self.tasks, (*self.columns, *other.columns), difference, limits)


def intervals_of(metrics: Mapping[str, TaskSums]) -> dict[str, Interval | None]:
    """Return the intervals of metrics by name, ``None`` where resampling the tasks says nothing.

    Metrics of the same tasks are resampled together: drawing is most of the work.
    """
    alike: dict[tuple[str, ...], dict[str, TaskSums]] = defaultdict(dict)
    for name, metric in metrics.items():
        alike[metric.tasks][name] = metric
    found: dict[str, Interval | None] = {}
    for group in alike.values():
        found |= _of_same_tasks(group)
    return {name: found[name] for name in metrics}


def _of_same_tasks(metrics: Mapping[str, TaskSums]) -> dict[str, Interval | None]:
    places: dict[tuple[float, ...], int] = {}
    asked = []
    for metric in metrics.values():
        # Equal columns, as the counts of answers mostly are, are summed once.
        own = [places.setdefault(column, len(places)) for column in metric.columns]
        asked.append((_of_places(metric.statistic, itemgetter(*own)), metric.limits))
    rows = list(zip(*places, strict=True))
    return dict(zip(metrics, bootstrap_intervals(rows, asked), strict=True))


def _of_places(statistic: Statistic, places: Callable[[Sequence[float]], Sequence[float]]) -> Statistic:
    return lambda sums: statistic(places(sums))
