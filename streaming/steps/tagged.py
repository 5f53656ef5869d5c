"""The one row shape between all steps: (label, bucket, route, cell).

Every step's output is one stream of these rows, so that no streaming DataFrame is used twice.
"""

from typing import NamedTuple

SCHEMA = "label string, bucket int, route string, cell binary"

FRAMES = "frames"  # pack -> follow: one file's frames of one bucket, with the file's marks
EXCHANGES = "exchanges"  # follow -> decode: exchanges and connections; judge -> sink: rows of that table
CLAIMS = "claims"  # decode -> judge: what the exchanges state
PROGRESS = "progress"  # follow -> judge: how far one agent has been followed in one bucket
MARKS = "marks"  # follow -> judge: what an agent reports about itself


class Tagged(NamedTuple):
    label: str
    """The cluster label given to the agent."""
    bucket: int
    """Which part of the connections; -1 behind the judge."""
    route: str
    cell: bytes
