"""What the user named, as folders of frames: pcaps are written as frames first, by the capture room.

Knows: which input is a pcap and which a folder, and that whatever cannot be read ends in one line. Refuses to know
what is in them.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from commands.ending import Stop
from commands.screen import progress


def frames_of(inputs: Iterable[str], folder: Path, cluster: str, keep_records: bool) -> list[Path]:
    """Folders of frames: those given, and one that is made here of the pcaps given."""
    given = [Path(name) for name in inputs]
    folders = [path for path in given if path.is_dir()]
    pcaps = [path for path in given if not path.is_dir()]
    if not pcaps:
        return folders
    write_frames(pcaps, folder, cluster, keep_records=keep_records)
    return [*folders, folder]


def write_frames(files: list[Path], out: Path, cluster: str, *, keep_records: bool) -> Any:
    from capture import agent, pcap

    with progress("reading") as advance:
        try:
            return agent.write_frames(files, out, cluster, on_progress=advance, keep_records=keep_records)
        except pcap.InputError as error:
            raise Stop(str(error)) from error
        except OSError as error:
            raise Stop(f"{error.filename or out}: {error.strerror}") from error
