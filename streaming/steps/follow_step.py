"""Stateful, by bucket: frames files in their order, exchanges out.

An agent's frontier moves over contiguous file numbers only. Everything learned is in the snapshot, so that a repeated
batch or a restart gives the same rows. If following a connection raises, it is set aside and reported. If the follower
raises for any other reason, the file that causes it is quarantined, and open connections are joined again mid-stream.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirecheck.capture import frames
from wirecheck.capture.frames_file_name import file_name
from wirecheck.decode.connection.exchanges import Exchanges, joined
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.segments import Segments
from wirecheck.judge.agents import AgentFrontiers
from wirecheck.judge.ledger.failures import attempted, described
from wirecheck.streaming.steps import quarantine
from wirecheck.streaming.steps.cells import from_cell, to_cell
from wirecheck.streaming.steps.pack_step import FrameFile, file_of, read_file, together
from wirecheck.streaming.steps.settings import AgentFiles, Settings
from wirecheck.streaming.steps.settled_connections import SettledConnections
from wirecheck.streaming.steps.tagged import EXCHANGES, MARKS, PROGRESS, Tagged
from wirecheck.streaming.steps.unanswered_connections import UnansweredConnections
from wirecheck.wording import clock

FRAMES_A_CALL = 20_000  # of as many connections at most: these can always be taken in, and are 60 MB of objects
MESSAGES_A_CELL = 10_000  # from here on, what a cell costs is little beside what its messages cost
Packed = bytes | FrameFile
"""A file as it came: in a cell, or within one process as it is."""
Turns = dict[str, deque[Packed]]
"""The files to follow by agent, in order, as they came."""


def calls(files: list[FrameFile]) -> Iterator[tuple[Segments, NDArray[np.int64]]]:
    """Their frames as the follower is given them, and of which file each is."""
    pieces = [file.segments for file in files if file.segments is not None]
    if not pieces:
        return
    whole = together(pieces)
    whose = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
    if (order := in_time(whole)) is not None:
        whole, whose = whole.take(order), whose[order]
    for part in whole.parts(FRAMES_A_CALL):
        yield part, whose[: len(part)]
        whose = whose[len(part) :]


def in_time(segments: Segments) -> NDArray[np.int64] | None:
    """The order of frames of several agents by their clocks, so that one heals what another lost while it is awaited;
    None where they are of one agent, and in its order.
    """
    return np.argsort(segments.ts_ns, kind="stable") if len(np.unique(segments.agent)) > 1 else None


def rounds(turns: Turns) -> Iterator[list[FrameFile]]:
    """The files that are followed together, in order: all of them where several agents may heal each other's losses;
    of a single one only as many as make a call, so that their frames are held a few files at a time.
    """
    if len(turns) > 1:
        yield [read_file(cell) for name in sorted(turns) for cell in turns[name]]
        return
    some: list[FrameFile] = []
    count = 0
    for cells in turns.values():
        while cells:
            file = read_file(cells.popleft())
            count += len(file.segments) if file.segments is not None else 0
            if some and count > FRAMES_A_CALL:
                yield some
                some, count = [], len(file.segments) if file.segments is not None else 0
            some.append(file)
    if some:
        yield some


def some_together(learned: Iterable[Exchanges]) -> Iterator[Exchanges]:
    """Exchanges without empty ones; small ones are joined, because a cell costs more than a thousand messages."""
    parts: list[Exchanges] = []
    for exchanges in learned:
        if exchanges.connections:
            if parts and sum(len(part.messages) for part in (*parts, exchanges)) > MESSAGES_A_CELL:
                yield joined(parts)
                parts = []
            parts.append(exchanges)
    if parts:
        yield joined(parts)


STATE_VERSION = 4
MAGIC = f"wirecheck bucket {STATE_VERSION}"
SECOND_NS = 1_000_000_000
CONNECTIONS_A_CALL = 5_000
"""That are closed at once: as objects they take some 5 kB each."""
SETTLED = "frames of connections that had settled"
TOO_LATE = "it came after later files of its agent had been judged"
MOST_ABSENCES = 16
"""So many of an agent are listed with their times."""
TWICE = "another file of this agent and number was read before it"
Ints = NDArray[np.int64]


class StateVersionMismatch(Exception):  # noqa: N818 - reads as what happened
    """The checkpoint was written by another version of this step."""


@dataclass
class Agent:
    """One agent, as one bucket knows it."""

    next_seq: int = 0
    """The file awaited; 0 until the first is known."""
    held: dict[int, Packed] = field(default_factory=dict)
    """Files that came early, as they came."""
    ts_ns: int = 0
    """Everything up to this capture time has been shown."""
    ended: bool = False
    absences: int = 0
    """How often it was not there between two files."""
    unread_seq: int = 0
    """The highest number of a file that could not be read and that nothing waits for."""

    @property
    def over(self) -> bool:
        """It has ended, or all it has brought so far could not be read."""
        return self.ended or (self.next_seq > 0 and not self.ts_ns)


def absence(name: str, agent: Agent, until_ns: int) -> frames.Mark:
    """What happened between the last that an agent has shown and its next start is not known."""
    seconds = (until_ns - agent.ts_ns) // SECOND_NS
    times = (f"{clock(ts_ns, dated=True)} UTC" for ts_ns in (agent.ts_ns, until_ns))
    span = f"from {' to '.join(times)}" if agent.absences <= MOST_ABSENCES else "more often"
    return frames.Mark(frames.AWAY, until_ns, None, seconds, f"{name} did not capture, {span}")


@dataclass(frozen=True)
class Progress:
    """How far one agent has been followed in one bucket."""

    agent: str
    ts_ns: int
    ended: bool


@dataclass(frozen=True)
class Marks:
    """What an agent reported about itself, in order."""

    agent: str
    marks: tuple[frames.Mark, ...]
    missing_files: int = 0
    """Files given up since the last time."""
    file_seq: int = 0
    """The last file followed."""


@dataclass
class Batch:
    """The files that one call brings."""

    turns: Turns
    missing: dict[str, int]
    """Files given up, by agent."""
    unread: list[tuple[str, int, str]]
    """Files that are not followed: agent, number, reason."""
    ready: list[FrameFile] = field(default_factory=list)
    """Those that were followed, without their frames."""


class Bucket:
    """The connections of one bucket under one label."""

    def __init__(self, label: str, number: int, settings: Settings, *, without_records: bool = False) -> None:
        """`without_records`: large messages are handed out without them, so that they are never copied."""
        self.label, self.number, self.settings, self.without_records = label, number, settings, without_records
        self.follower = self.new_follower()
        self.agents: dict[str, Agent] = {}
        self.settled = SettledConnections()
        self.unanswered = UnansweredConnections()
        self.away: list[tuple[str, frames.Mark]] = []
        """What agents missed that ended, or were killed, and began again."""
        self.late: Counter[str] = Counter()
        """Frames of settled connections by agent."""
        self.failed: list[tuple[str, str, str]] = []
        """What could not be followed: agent, connection, and why."""
        self.quarantined: dict[tuple[str, int], str] = {}
        """Files of this batch with frames that could not be followed: by agent and number, and why."""
        self.refused = 0
        """Frames that the follower had refused when this batch began."""

    def new_follower(self) -> Follower:
        return Follower(ports=self.settings.ports, contained=True, without_records=self.without_records)

    def receive(self, cells: Iterable[bytes]) -> Iterator[Tagged]:
        """All rows that one batch has for this bucket."""
        batch = self.begun(cells)
        for exchanges in some_together(self.learned(batch)):
            yield Tagged(self.label, self.number, EXCHANGES, to_cell(exchanges))
            del exchanges
        for route, report in self.reports(batch):
            yield Tagged(self.label, self.number, route, to_cell(report))

    def begun(self, files: Iterable[Packed]) -> Batch:
        """What of these files, and of those that waited for them, is followed now."""
        batch = Batch(*self.in_order(files))
        self.refused, self.passed_ns = self.follower.refused, self.passed()
        self.follower.expect([*self.agents])
        return batch

    def learned(self, batch: Batch) -> Iterator[Exchanges]:
        """Exchanges of a batch's files, and of all that is open if all agents have ended."""
        for files in rounds(batch.turns):
            yield from map(self.bounded_rows, self.followed(files))
            batch.ready += [replace(file, segments=None) for file in files]
            del files
        if self.all_ended():
            yield from map(self.bounded_rows, self.drained())

    def reports(self, batch: Batch) -> Iterator[tuple[str, Progress | Marks]]:
        """What is to be said once a batch was followed, each with its route."""
        ready, unread = batch.ready, batch.unread
        over = {name for name, _, _ in unread if self.has_ended(name)}
        for name in sorted({file.agent for file in ready} | over):
            yield PROGRESS, Progress(name, self.agents[name].ts_ns, self.has_ended(name))
        of_agents = self.agents_marks(ready, batch.missing, unread) if self.number == 0 else ()  # every bucket has them
        for marks in [*of_agents, *self.own_marks(ready)]:
            yield MARKS, marks
        self.settled.forget(self.passed_ns)

    def drained(self) -> Iterator[Exchanges]:
        """What is still open is over, so many connections at a time."""
        open_before = self.follower.open + 1
        while open_before > self.follower.open:
            open_before = self.follower.open
            yield from self.contained(self.follower.drain, CONNECTIONS_A_CALL)[0]

    def followed(self, files: list[FrameFile]) -> Iterator[Exchanges]:
        """Exchanges that these files' frames and progress rows complete."""
        with_frames = [file for file in files if file.segments is not None]
        for part, whose in calls(with_frames):
            yield from self.received(with_frames, *self.in_time(with_frames, part, whose))
        for file in files:
            yield from self.advance(file)

    def received(self, files: list[FrameFile], part: Segments, whose: Ints) -> Iterator[Exchanges]:
        """Exchanges that these frames complete.

        If they cannot be followed together, those of each file are followed alone. A file whose frames still cannot be
        followed is quarantined.
        """
        learned, error = self.contained(self.follower.receive, part)
        yield from learned
        for number in np.unique(whose).tolist() if error else ():
            learned, error = self.contained(self.follower.receive, part.take(whose == number))
            yield from learned
            if error:
                self.quarantined[files[number].agent, files[number].file_seq] = described(error)

    def contained(self, learn: Callable[..., Exchanges], *about: Any) -> tuple[list[Exchanges], Exception | None]:
        """Exchanges of a call of the follower; connections that it could not follow are added to `failed`.

        Where it raises outside any connection, its memory cannot be used. A new one joins all connections mid-stream:
        nothing that was handed out is repeated, and no request counts as unanswered.
        """
        learned, error = attempted(lambda: [learn(*about)])
        if error is None:
            self.failed += [
                (agent, name, f"the connection was not followed: {described(wrong)}")
                for agent, name, wrong in self.follower.failed
            ]
            return learned, None
        self.refused -= self.follower.refused
        self.failed.append(("", "", f"{self.follower.open:,} connections were joined again: {described(error)}"))
        self.follower = self.new_follower()
        self.follower.expect([*self.agents])
        for name, agent in self.agents.items():
            self.follower.advance(name, agent.ts_ns, ended=agent.ended)
        return [], error

    def passed(self) -> int:
        """What every agent that is waited for has shown, before these files."""
        fronts = {name: (agent.ts_ns, agent.ended) for name, agent in self.agents.items()}
        frontiers = AgentFrontiers(fronts, self.settings.judge.agent_silent_s)
        frontiers.awaited = self.settings.awaited(self.label)
        return frontiers.passed_ns

    def in_time(self, files: list[FrameFile], part: Segments, whose: Ints) -> tuple[Segments, Ints]:
        """Without the frames of connections that have settled, which are counted."""
        if (late := self.settled.late(part, self.passed_ns)) is None:
            return part, whose
        self.late.update(files[number].agent for number in whose[late].tolist())
        return part.take(~late), whose[~late]

    def in_order(self, cells: Iterable[Packed]) -> tuple[Turns, dict[str, int], list[tuple[str, int, str]]]:
        """The files that can be followed now, each agent's in order; the number of files given up per agent; and the
        files that are not followed, each by agent and number with the reason.
        """
        unread: list[tuple[str, int, str]] = []
        for cell in cells:
            name, number = file_of(cell)
            agent = self.agents.setdefault(name, Agent())
            if number < agent.next_seq:
                unread.append((name, number, TOO_LATE))
            elif number in agent.held:
                unread.append((name, number, TWICE))
            elif agent.next_seq and number > agent.next_seq + self.settings.held_files and (why := reason_of(cell)):
                unread.append((name, number, why))  # nothing waits for it, and it makes nothing else look old
                agent.unread_seq = max(agent.unread_seq, number)
            else:
                agent.held[number] = cell
        turns: Turns = {}
        missing: dict[str, int] = {}
        for name in sorted(self.agents):
            agent, known = self.agents[name], self.settings.agents.get(name)
            while (seq := due(agent, known, self.settings.held_files)) is not None:
                missing[name] = missing.get(name, 0) + (seq - agent.next_seq if agent.next_seq else 0)
                agent.next_seq = seq + 1
                turns.setdefault(name, deque()).append(agent.held.pop(seq))
        return turns, missing, unread

    def advance(self, file: FrameFile) -> Iterable[Exchanges]:
        agent, known = self.agents[file.agent], self.settings.agents.get(file.agent)
        for mark in file.marks:  # an agent that ended may begin again, in a later file
            if mark.kind == frames.STARTED and 0 < agent.ts_ns <= mark.ts_ns - SECOND_NS:
                agent.absences += 1
                self.away.append((file.agent, absence(file.agent, agent, mark.ts_ns)))
            agent.ended = (agent.ended and mark.kind != frames.STARTED) or mark.kind == frames.ENDED
        agent.ended = agent.ended or bool(known and known.last and file.file_seq >= known.last)
        shown = self.believed(max((mark.ts_ns for mark in file.marks if mark.kind == frames.PROGRESS), default=0))
        if shown <= agent.ts_ns and not agent.ended:
            return []
        agent.ts_ns = max(shown, agent.ts_ns)
        return self.contained(partial(self.follower.advance, ended=agent.ended), file.agent, agent.ts_ns)[0]

    def has_ended(self, name: str) -> bool:
        """Whether no more of it will come: it has ended, or its last file is there and none could be read."""
        agent, known = self.agents[name], self.settings.agents.get(name)
        return agent.ended or bool(known and known.last and not agent.ts_ns and agent.unread_seq >= known.last)

    def believed(self, ts_ns: int) -> int:
        """Up to when an agent has shown its traffic, if its clock is not ahead by so much that all others would count
        as silent.
        """
        now_ns = time.time_ns()
        ahead_ns = self.settings.judge.agent_silent_s * SECOND_NS
        return now_ns if self.settings.live and ts_ns > now_ns + ahead_ns else ts_ns

    def all_ended(self) -> bool:
        known = {name for name, files in self.settings.agents.items() if files.label in {"", self.label}}
        expected = known | self.agents.keys()
        return all(name in self.agents and self.agents[name].over for name in expected)

    def bounded_rows(self, learned: Exchanges) -> Exchanges:
        """Those that have left the follower are remembered; those without an answer are bounded."""
        self.settled.let_go(learned.connections)
        return self.unanswered.bounded(learned)

    def agents_marks(
        self, ready: list[FrameFile], missing: dict[str, int], unread: list[tuple[str, int, str]]
    ) -> Iterator[Marks]:
        """The marks of each agent's files, and marks for files that are not followed."""
        for name in sorted({file.agent for file in ready}):
            marks = tuple(mark for file in ready if file.agent == name for mark in file.marks)
            yield Marks(name, marks, missing.get(name, 0), self.agents[name].next_seq - 1)
        for agent, seq, why in unread:
            yield Marks(agent, quarantine.marks(file_name(agent, seq), why))
        for name, mark in self.away:
            yield Marks(name, (mark,))

    def own_marks(self, ready: list[FrameFile]) -> Iterator[Marks]:
        """What this bucket did not follow: late frames by agent, files and connections that raised, and frames beyond
        the follower's bound, in the name of the batch's last agent.
        """
        for agent, count in sorted(self.late.items()):
            yield Marks(
                agent, (frames.Mark(frames.LATE, self.agents[agent].ts_ns, None, count, f"{agent}: {SETTLED}"),)
            )
        for (agent, seq), why in self.quarantined.items():
            reason = f"its frames could not be followed: {why}"
            yield Marks(agent, quarantine.marks(file_name(agent, seq), reason))
        for agent, connection, why in self.failed:
            yield Marks(agent, (frames.Mark(frames.INPUT_ERROR, 0, connection or agent, 1, why),))
        self.late.clear()
        self.away.clear()
        self.quarantined.clear()
        self.failed.clear()
        if count := self.follower.refused - self.refused:
            agent = ready[-1].agent
            why = "too many open connections"
            yield Marks(agent, (frames.Mark(frames.SKIPPED, self.agents[agent].ts_ns, None, count, why),))

    def snapshot(self) -> bytes:
        known = to_cell((self.agents, self.settled.stored(), self.unanswered.stored()))
        return to_cell((MAGIC, known, self.follower.snapshot()))

    def restore(self, cell: bytes) -> None:
        magic, known, follower = from_cell(cell)
        if magic != MAGIC:
            raise StateVersionMismatch(f"the checkpoint holds no bucket of state version {STATE_VERSION}")
        self.agents, settled, unanswered = from_cell(known, Agent)
        self.settled = SettledConnections(*settled)
        self.unanswered = UnansweredConnections(*unanswered)
        self.follower = Follower.restore(follower, ports=self.settings.ports, contained=True)


def reason_of(cell: Packed) -> str | None:
    """Why a file could not be read; None if it was."""
    return next((mark.reason for mark in read_file(cell).marks if mark.kind == frames.QUARANTINED), None)


def due(agent: Agent, known: AgentFiles | None, bound: int) -> int | None:
    """The number of the file to follow next, if it is there and its turn has come."""
    if not agent.held:
        return None
    seq = agent.next_seq or (known.first if known else 1)
    for gap in known.missing if known else ():
        seq = gap.stop if seq in gap else seq
    if seq in agent.held:
        return seq
    soonest = min(agent.held)  # given up is what does not come, and what was gone when this start began
    return soonest if len(agent.held) > bound or (known and soonest <= known.first) else None
