"""Folders of frames: which files they hold, of which agents, and which are missing.

An agent's files may be in one folder only. A file of another name is an error if it is alone, and skipped otherwise.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from wirecheck.capture.frames_file import FormatError
from wirecheck.capture.frames_file_name import base_name, file_name, whose
from wirecheck.streaming.steps.quarantine import label_of, metadata_of
from wirecheck.streaming.steps.settings import AgentFiles


class FramesError(Exception):
    """Why folders have no frames of distinguishable agents, in one line for a person."""


def frames_files(folders: list[Path]) -> list[Path]:
    """All files of frames there, sorted by folder and name. Raises FramesError."""
    files = []
    for folder in folders:
        found = sorted(file for file in folder.glob("*.parquet") if not file.name.startswith((".", "_")))
        strange = [file.name for file in found if not whose(file.name)]
        if strange and len(strange) == len(found):
            raise FramesError(f"{folder}: {strange[0]} is not a file of frames (AGENT-NNNNNNNNNN.parquet)")
        if not found:
            raise FramesError(f"{folder}: holds no capture and no frames (AGENT-NNNNNNNNNN.parquet)")
        files += found
    names = [base_name(file.name) for file in files]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise FramesError(f"{twice[0]} is in more than one folder: the agents need names of their own")
    places = dict(zip(names, map(str, files), strict=True))
    need_format(places[first_of(agent, known)] for agent, known in agents_of(files).items())
    return files


def need_format(firsts: Iterable[str]) -> None:
    """`firsts`: the first file of each agent. Raises FramesError where none of them has this release's format and
    another release wrote one; beside files of this format it is set aside as any other that cannot be read.
    """
    refused = ""
    for path in firsts:
        try:
            metadata_of(path)
        except FormatError as wrong:
            refused = refused or f"{path}: {wrong}"
        except (OSError, ValueError):
            continue
        else:
            return
    if refused:
        raise FramesError(refused)


def agents_of(files: list[Path]) -> dict[str, AgentFiles]:
    """Who wrote them: first and last number, and which are missing between, by agent."""
    numbers: dict[str, set[int]] = {}
    for file in files:
        if parsed := whose(file.name):
            agent, number = parsed
            numbers.setdefault(agent, set()).add(number)
    return {
        agent: AgentFiles(min(present), missing_between(present), max(present))
        for agent, present in sorted(numbers.items())
    }


def missing_between(present: Iterable[int]) -> tuple[range, ...]:
    """The gaps between these numbers. A name may claim any number, so a gap costs the same however long it is."""
    return tuple(range(one + 1, other) for one, other in pairwise(sorted(present)) if one + 1 < other)


def labelled(agents: dict[str, AgentFiles], path: Callable[[str], str]) -> dict[str, AgentFiles]:
    """Each agent with the label of its first file: one label's end does not wait for another's. `path`: of a name."""
    return {agent: replace(files, label=label_of(path(first_of(agent, files)))) for agent, files in agents.items()}


def labelled_in(agents: dict[str, AgentFiles], files: list[Path]) -> dict[str, AgentFiles]:
    """The same, of agents with these files."""
    return labelled(agents, {base_name(file.name): str(file) for file in files}.__getitem__)


def first_of(agent: str, files: AgentFiles) -> str:
    return file_name(agent, files.first)
