"""What could not be judged: an exception as a value, and what there is of them now.

Rule: an exception ends what it happened in and nothing else. It is caught once per level: a check about one subject
(`evaluate.py`), a claim that is filed, a snapshot, the clusters, ageing (`judge.py`). Memory of them is bounded; those
beyond the bound still count in the batch in which they happen.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from wirecheck.judge.claims.claim import Sighting, Subject

Made = TypeVar("Made")
FILING, ASSEMBLY, CLUSTERS, AGEING, SORTING = "filing", "snapshots", "clusters", "ageing", "sorting"
UNAUTHENTICATED_HOSTS, SETTLING, GENERATIONS = "unauthenticated hosts", "settling", "log generations"
FORWARDERS, HOST_NAMES = "forwarders", "host names"
STEPS = (
    FILING, ASSEMBLY, CLUSTERS, AGEING, SORTING, UNAUTHENTICATED_HOSTS, SETTLING, GENERATIONS, FORWARDERS, HOST_NAMES,
    "rows",
)  # fmt: skip
"""What may fail besides checks and tables; with their codes and names the closed set of what failures count under."""
MOST = 4096
"""So many subjects are remembered."""


class Failure(NamedTuple):
    """One exception, about one subject."""

    check: str
    """Code of the check, or one of STEPS."""
    subject: Subject
    cluster: str
    error: str
    """Kind of the exception, and where: ValueError in replicas.py:128."""
    seen: Sighting | None
    """The last sighting of the subject."""
    trace: str = ""
    """For developers; not kept."""

    @property
    def about(self) -> str:
        return " ".join(filter(None, self.subject)) or "all"


def failure(
    check: str, subject: Subject, error: Exception, *, cluster: str = "", seen: Iterable[Sighting] = ()
) -> Failure:
    trace = "".join(traceback.format_exception(error))
    return Failure(check, subject, cluster, described(error), max(seen, default=None), trace)


def described(error: BaseException) -> str:
    """Kind and place of an exception. Its message is omitted, because it may contain data from the wire."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"


def attempted(make: Callable[..., Iterable[Made]], *about: Any) -> tuple[list[Made], Exception | None]:
    """All that something makes, or nothing of it and why."""
    try:
        return list(make(*about)), None
    except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
        return [], error


class Failures:
    """What cannot be judged now, by subject, and what failed since it was last asked."""

    def __init__(self, stored: Iterable[Any] = ()) -> None:
        self.current: dict[Subject, dict[str, Failure]] = {}
        for check, subject, cluster, error, seen in stored:
            self.stand(Failure(check, tuple(subject), cluster, error, Sighting(*seen) if seen else None))
        self.changed = False
        self.new: list[Failure] = []
        self.sorted: dict[str, list[Failure]] | None = None
        """By cluster, until one comes or goes: asked for once per endpoint."""

    def attempt(self, step: str, subject: Subject, make: Callable[..., Made], *about: Any) -> Made | None:
        """The result of a step for a subject; None if it raises, which is then remembered as a failure."""
        try:
            return make(*about)
        except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
            self.add(failure(step, (step, *subject), error))
        return None

    def retry(self, step: str, subject: Subject, make: Callable[..., Made], *about: Any) -> Made | None:
        """The same for a step that is done again about a subject: what failed before is over."""
        self.judged((step, *subject), ())
        return self.attempt(step, subject, make, *about)

    def add(self, *failed: Failure) -> None:
        for one in failed:
            self.new.append(one)
            self.stand(one)

    def stand(self, one: Failure) -> None:
        if one.subject in self.current or len(self.current) < MOST:
            self.current.setdefault(one.subject, {})[one.check] = one._replace(trace="")
            self.changed, self.sorted = True, None

    def judged(self, subject: Subject, failed: Iterable[Failure]) -> None:
        """A subject was judged again: what failed now is all that fails there."""
        if self.current.pop(subject, None) is not None:
            self.changed, self.sorted = True, None
        self.add(*failed)

    def forget(self, step: str) -> None:
        """Before a step is tried again that is about no subject of a check's."""
        for subject in [subject for subject in self.current if subject[0] == step]:
            self.judged(subject, ())

    def __iter__(self) -> Iterator[Failure]:
        for _, by_check in sorted(self.current.items()):
            yield from by_check.values()

    def by_cluster(self) -> dict[str, list[Failure]]:
        if self.sorted is None:
            self.sorted = {}
            for one in self:
                self.sorted.setdefault(one.cluster, []).append(one)
        return self.sorted

    def new_ones(self) -> list[Failure]:
        new, self.new = self.new, []
        return new

    def stored(self) -> list[Any]:
        return [[one.check, one.subject, one.cluster, one.error, one.seen] for one in self]
