"""Settings of a run of the query, in one value that goes to every worker.

Buckets and agents are part of a checkpoint's meaning; a run that changes them needs a new one.
"""

from dataclasses import dataclass, field

from wirecheck.judge.thresholds import Settings as JudgeSettings


@dataclass(frozen=True)
class AgentFiles:
    """The files of one agent that are there when a replay or a monitor starts."""

    first: int = 1
    """The lowest file_seq: nothing older is waited for."""
    missing: tuple[range, ...] = ()
    """Numbers above `first` of which no file is there, and none will come; in order."""
    last: int = 0
    """The highest file_seq, behind which nothing comes, end mark or not; 0 where more may come."""
    label: str = ""
    """The cluster label of its files; empty where it is not known."""


@dataclass(frozen=True)
class Settings:
    buckets: int = 8
    """Parts the connections are cut into; a bucket is followed as one."""
    ports: frozenset[int] = frozenset()
    """Only connections with one of these ports, if any are named."""
    dialects: tuple[str, ...] = ()
    """By whose layouts to read what no release has: kip516-draft, kip4-draft."""
    exchanges: bool = False
    """Also write one row per exchange."""
    by_minute: bool = False
    """Also write what clients request, and what came of it, by the minute."""
    held_files: int = 64
    """Files of one agent that may wait for an earlier one before that one is given up."""
    judge: JudgeSettings = field(default_factory=JudgeSettings)
    """Grace periods and thresholds."""
    live: bool = False
    """A monitor's: frames are of now, so an agent whose clock is ahead of this host's has shown nothing beyond now."""
    verbose: bool = False
    """Let Spark speak on the terminal."""
    agents: dict[str, AgentFiles] = field(default_factory=dict)
    """Replay knows all agents and files beforehand; to a monitor more of both may come."""

    def awaited(self, label: str) -> frozenset[str]:
        """The agents of a label whose files are all known: their files are waited for."""
        return frozenset(name for name, files in self.agents.items() if files.last and files.label in {"", label})
