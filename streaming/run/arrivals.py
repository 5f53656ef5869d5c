"""Frames files as they arrive: which wait, and which make the next batch.

An agent numbers its files without holes, so the next one is looked for by name; everything else is found by listing the
folder now and then. Positions are bounded: a file that comes later than MOST_AWAITED others, or twice, is not seen.
"""

import errno
import math
import os
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import pairwise
from threading import Lock

from pyarrow import fs

from wirecheck.capture import frames_file_name
from wirecheck.capture.frames_file_name import FOREIGN_NUMBER, base_name, whose
from wirecheck.streaming.checkpoint import BatchFiles, Position
from wirecheck.streaming.steps.quarantine import metadata_at
from wirecheck.streaming.store.storage import at, is_local

LIST_S = 5.0
FAR_LIST_S = 30.0
"""An object store answers a thousand names at a time."""
REST = 20
"""Between two listings lies so many times what one takes: that of a month of files takes seconds."""
LOOK_S, FAR_LOOK_S = 0.1, 2.0
MOST_AWAITED = 1000
MOST_OF_ONE = 2000
"""Files of one agent in a batch: of a backlog of days no more is looked through."""
FORGET_S = 2 * 86400
"""An agent that has no file there for so long is gone; a folder that was not there for a while has lost none."""


@dataclass(frozen=True)
class File:
    size: int
    came_s: float


@dataclass
class ArrivedFiles:
    """One agent's files."""

    position: Position | None = None
    """None until one is read."""
    waiting: dict[int, File] = field(default_factory=dict)
    """By number."""
    absent_s: float | None = None
    """Since when it has no file there."""

    def wants(self, number: int) -> bool:
        """Whether it has not been read, as far as can be known."""
        if number in self.waiting:
            return False
        if self.position is None:
            return True
        return not self.position.first <= number < self.position.next or number in self.position.awaited

    def newest(self) -> int:
        return max([self.position.next - 1 if self.position else 0, *self.waiting])

    def after(self, numbers: list[int]) -> Position:
        """How far it has been read with these."""
        begun = self.position or Position(min(numbers), min(numbers))
        lower = sorted(number for number in numbers if number < begun.first)
        higher = sorted(number for number in numbers if number >= begun.next)
        missing = {*begun.awaited, *between([*lower, begun.first]), *between([begun.next - 1, *higher])}
        first, upto = (lower or [begun.first])[0], [begun.next, *(number + 1 for number in higher)][-1]
        return Position(first, upto, tuple(sorted(missing - set(numbers))[-MOST_AWAITED:]))


def between(numbers: list[int]) -> Iterator[int]:
    """What these ascending numbers pass over; of a long stretch its end."""
    for earlier, number in pairwise(numbers):
        yield from range(max(earlier + 1, number - MOST_AWAITED), number)


class Arrivals:
    """One folder. Threads may ask meanwhile."""

    def __init__(self, frames: str, positions: dict[str, Position]) -> None:
        self._lock = Lock()
        self._folder = (OnDisk if is_local(frames) else Folder)(*at(frames))
        self._agents = {name: ArrivedFiles(position) for name, position in positions.items()}
        self._due_s = -math.inf
        self.restarted: Mapping[str, tuple[int, int]] = {}
        """Agents whose numbers went back: the last there is, and the next that would be read."""
        self.there: Mapping[str, set[int]] = {}
        """The numbers of each agent's files, as the last look everywhere found them and until the next one."""
        self.no_text: tuple[str, ...] = ()
        """Frames files whose names are not UTF-8: no agent writes such names, and no table could hold them."""

    @property
    def look_s(self) -> float:
        """How often it is worth while."""
        return self._folder.look_s

    def look(self, *, everywhere: bool = False) -> None:
        """Find what came since. Raises OSError."""
        with self._lock:
            due, self.there = time.monotonic() >= self._due_s, {}
            if everywhere:
                self.there = self._list()
            elif due:
                self._list()
            else:
                self._probe()

    def lowest(self) -> dict[str, int]:
        """The first of each agent's files that are `there`; one without a byte is none."""
        first = {}
        for agent, numbers in self.there.items():
            while numbers and self._folder.file(file_name(agent, min(numbers))) is None:
                numbers.remove(min(numbers))
            if numbers:
                first[agent] = min(numbers)
        return first

    def _probe(self) -> None:
        """The next file of each agent, and those behind it."""
        for name, agent in self._agents.items():
            number = agent.newest() + 1
            while (found := self._folder.file(file_name(name, number))) is not None:
                agent.waiting[number] = found
                number += 1

    def _list(self) -> dict[str, set[int]]:
        """Of a file that was read nothing is asked but its name."""
        began_s = time.monotonic()
        numbers_by_agent: dict[str, set[int]] = {}
        foreign: dict[str, set[int]] = {}
        no_text: list[str] = []
        listed = self._folder.listed()
        for file in listed:
            if file.startswith((".", "_")) or not file.endswith(".parquet"):
                continue
            if (shown := base_name(file)) != file:
                no_text.append(shown)
            elif (parsed := whose(file)) is not None:
                numbers_by_agent.setdefault(parsed[0], set()).add(parsed[1])
            else:
                foreign[file] = {FOREIGN_NUMBER}  # an agent of its own
        self.no_text = tuple(no_text)
        for name, numbers in list(numbers_by_agent.items()):
            strange = [*self._far_ahead(name, numbers)]
            foreign |= {file_name(name, number): {FOREIGN_NUMBER} for number in strange}
            numbers_by_agent[name] = numbers.difference(strange)
        numbers_by_agent = {name: numbers for name, numbers in numbers_by_agent.items() if numbers}
        for name, numbers in {**numbers_by_agent, **foreign}.items():
            agent = self._agents.setdefault(name, ArrivedFiles())
            for number in filter(agent.wants, numbers):
                file = file_name(name, number)
                if (waiting := listed[file] or self._folder.file(file)) is not None:
                    agent.waiting[number] = waiting
        self.restarted = {
            name: last for name, numbers in numbers_by_agent.items() if (last := self._restarted(name, numbers))
        }
        now_s = time.monotonic()
        self._vanished(numbers_by_agent.keys() | foreign.keys(), numbers_by_agent, now_s)
        self._due_s = now_s + max(self._folder.list_s, REST * (now_s - began_s))
        return numbers_by_agent

    def _far_ahead(self, name: str, numbers: set[int]) -> Iterator[int]:
        """Those that no agent's file can have: far ahead of its others, in a file that holds no frames of it. Otherwise
        any process that can write here could make all later files of the agent look old.
        """
        agent = self._agents.get(name, ArrivedFiles())
        unread = sorted(filter(agent.wants, numbers))
        newest = agent.newest() or (unread or [0])[0]
        for number in unread:
            if number <= newest + MOST_AWAITED or self._folder.holds(file_name(name, number), name, number):
                newest = max(newest, number)
            else:
                yield number

    def _restarted(self, name: str, numbers: set[int]) -> tuple[int, int] | None:
        """Older files leave first: where the last one that was read has gone and older numbers are there, those are
        other files, of an agent that lost its place and counts from 1 again.
        """
        position, waiting = self._agents[name].position, self._agents[name].waiting
        again = position and not waiting and max(numbers) < position.next - 1
        return (max(numbers), position.next) if again and position else None

    def _vanished(self, names: AbstractSet[str], there: Mapping[str, set[int]], now_s: float) -> None:
        """Remove files that disappeared before they were read, and agents without files."""
        for name, agent in list(self._agents.items()):
            for number in agent.waiting.keys() - there.get(name, {1} if name in names else set()):
                del agent.waiting[number]
            agent.absent_s = None if name in names else agent.absent_s or now_s
            if agent.absent_s and (agent.position is None or now_s - agent.absent_s >= FORGET_S):
                del self._agents[name]

    def next_batch(self, most_bytes: int) -> BatchFiles | None:
        """The files that came first, at least one, together at most so large; None where none waits."""
        with self._lock:
            queues = [
                [(file.came_s, name, number, file.size) for number, file in in_turn(agent)]
                for name, agent in self._agents.items()
            ]
            numbers_by_agent: dict[str, list[int]] = {}
            files: list[str] = []
            total = 0
            for _, name, number, size in merge(*queues):
                if files and total + size > most_bytes:
                    break
                total += size
                numbers_by_agent.setdefault(name, []).append(number)
                files.append(file_name(name, number))
            after = self.positions() | {name: self._agents[name].after(some) for name, some in numbers_by_agent.items()}
            return BatchFiles(tuple(files), after) if files else None

    def positions(self) -> dict[str, Position]:
        return {name: agent.position for name, agent in self._agents.items() if agent.position}

    def consumed(self, batch: BatchFiles) -> None:
        """They wait no longer."""
        with self._lock:
            for name, position in batch.after.items():
                agent = self._agents.setdefault(name, ArrivedFiles())
                agent.position = position
            for file in batch.files:
                name, number = (file, FOREIGN_NUMBER) if file in batch.after else whose(file) or (file, FOREIGN_NUMBER)
                self._agents.setdefault(name, ArrivedFiles()).waiting.pop(number, None)

    def waiting(self) -> tuple[int, int]:
        """Files and bytes."""
        with self._lock:
            sizes = [file.size for agent in self._agents.values() for file in agent.waiting.values()]
        return len(sizes), sum(sizes)


def in_turn(agent: ArrivedFiles) -> list[tuple[int, File]]:
    """By number, none earlier than those before it; as many as may be in one batch."""
    in_order, came_s = [], 0.0
    for number in sorted(agent.waiting)[:MOST_OF_ONE]:
        came_s = max(came_s, agent.waiting[number].came_s)
        in_order.append((number, replace(agent.waiting[number], came_s=came_s)))
    return in_order


def file_name(agent: str, number: int) -> str:
    """An agent's, or the own name of a foreign file."""
    foreign = number == FOREIGN_NUMBER and agent.endswith(".parquet")
    return agent if foreign else frames_file_name.file_name(agent, number)


class Folder:
    """On an object store, where a listing states sizes and times, too."""

    list_s, look_s = FAR_LIST_S, FAR_LOOK_S

    def __init__(self, system: fs.FileSystem, folder: str) -> None:
        self.system, self.folder = system, folder

    def listed(self) -> Mapping[str, File | None]:
        """By name; None where `file` has to be asked for what a listing does not say."""
        found = self.system.get_file_info(fs.FileSelector(self.folder))
        return {info.base_name: file_of(info) for info in found if info.is_file}

    def file(self, name: str) -> File | None:
        """None where it is not, or has no bytes."""
        return file_of(self.system.get_file_info(f"{self.folder}/{name}"))

    def holds(self, name: str, agent: str, number: int) -> bool:
        """Whether a file's metadata states this agent and number."""
        try:
            stated = metadata_at(self.system, f"{self.folder}/{name}")
        except (OSError, ValueError):
            return False
        return (stated.agent, stated.file_seq) == (agent, number)


class OnDisk(Folder):
    list_s, look_s = LIST_S, LOOK_S

    def listed(self) -> Mapping[str, File | None]:
        return dict.fromkeys(os.listdir(self.folder))  # noqa: PTH208 - a Path a name would cost more than the call

    def file(self, name: str) -> File | None:
        try:
            found = os.stat(f"{self.folder}/{name}")  # noqa: PTH116 - a Path a file would cost more than the call
        except OSError as wrong:
            if wrong.errno not in {errno.ENOENT, errno.ELOOP}:  # a link that leads nowhere is no file either
                raise
            return None
        return File(found.st_size, found.st_mtime) if found.st_size else None


def file_of(info: fs.FileInfo) -> File | None:
    return File(info.size, info.mtime.timestamp()) if info.is_file and info.size else None
