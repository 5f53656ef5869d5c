"""Evidence of every finding of every capture: does it give the same finding again, and does tshark open it?

    python -m tools.evidence_of_captures [FOLDER ...]      folders that hold NAME/capture.pcap or NAME/capture.pcap.gz

Knows where captures lie and what to count. Refuses to know how evidence is chosen: that is the command's affair.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.commands.ending import Stop
from wirecheck.commands.evidence import Search
from wirecheck.session.local_check import judged_frames
from wirecheck.session.session import Session

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = (ROOT / "tests/scenarios/captures", ROOT / "examples")


def captures(folders: list[Path]) -> list[Path]:
    return sorted(path for folder in folders for path in folder.glob("*/capture.pcap*"))


def opens(path: Path, frames: int) -> bool:
    """Whether tshark reads every packet and complains of nothing; True where there is no tshark."""
    if not shutil.which("tshark"):
        return True
    result = subprocess.run(["tshark", "-r", str(path)], capture_output=True, text=True, check=False)
    said = [line for line in result.stderr.splitlines() if "could be dangerous" not in line]
    return result.returncode == 0 and not said and len(result.stdout.splitlines()) >= frames


def main(folders: list[Path]) -> int:
    good = every = 0
    for pcap in captures(folders):
        with TemporaryDirectory(prefix="wirecheck-") as scratch:
            room = Path(scratch)
            files = write_frames([pcap], room / "frames", "default").files
            for finding in judged_frames(Session(), files).findings():
                every += 1
                said = f"{pcap.parent.name}: {finding.code} {finding.id}"
                try:
                    frames, connections = Search(finding, files, room, keep_records=False).proven(room / "x.pcapng")
                except Stop as stop:
                    print(f"{said}: {stop.format_message()}")
                    continue
                opened = opens(room / "x.pcapng", frames)
                good += opened
                print(f"{said}: {frames} frames of {connections} connections{'' if opened else ', tshark complains'}")
    print(f"{good} of {every}")
    return good != every


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]] or list(SHIPPED)))
