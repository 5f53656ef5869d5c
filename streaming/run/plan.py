"""What a monitor is asked to do, and the error if it cannot.

One value, made once by the caller. A monitor that cannot continue gives one line for a person. How it runs is not known
here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from wirecheck.story.expectations import Expectation

Say = Callable[[str], None]
"""Prints a line for a person."""


class Line(str):  # noqa: SLOT000 - few
    """A line for a person, with the same as fields for a program."""

    fields: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def of(cls, text: str, fields: Mapping[str, str]) -> Self:
        made = cls(text)
        made.fields = fields
        return made


class MonitorError(Exception):
    """Why the monitor cannot run, in one line for a person."""


@dataclass(frozen=True)
class Plan:
    frames: str
    """Folder of frames files, on any file system Spark can list; agents may appear later."""
    out: str
    """Folder of the result tables."""
    checkpoint: str
    once: bool = False
    """Judge what is there and end."""
    interval_s: float = 2.0
    """A batch at most this often; at most twice as often where no file waited when the last one ended."""
    max_batch_bytes: int = 32 << 20
    """Frames files of one batch, together."""
    retain_s: float = 3600.0
    """Superseded revisions stay this long in the tables."""
    retain_results_s: float | None = None
    """Results that are older leave; None for never."""
    retain_results_bytes: int | None = None
    """Results of the run take no more, as far as older ones than an hour can leave; None for any size."""
    heap_bytes: int = 1 << 30
    """The most that Java's heap may take."""
    metrics_port: int | None = None
    metrics_address: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    """Further names in `Host` to which the page of findings is shown."""
    external_url: str = ""
    """Under which address others reach this monitor; empty for the metrics' own, if that is a loopback address."""
    principals: bool = True
    """Whether cards name the addresses of clients."""
    expect: tuple[Expectation, ...] = ()
    """What counts in no alert."""
    page: bool = False
    """Show the page for people at an address that is not this machine's own, too."""
    tables: str | None = None
    """The kind of the result tables (`result_folder.KINDS`); None for what their place has."""
