"""`wirecheck capture`: packets into the frames table.

Knows: the options of the agent. Refuses to know how packets are read or frames written: that is the capture room.
"""

from pathlib import Path

import click

from commands import options
from commands.inputs import write_frames


@click.command()
@click.option(
    "-r", "first", multiple=True, required=True, metavar="FILE...", help="Read these pcaps (pcapng, .gz too)."
)
@click.argument("more", nargs=-1, metavar="")
@click.option("--out", required=True, type=options.PATH, help="Folder for the frames (Parquet).")
@options.cluster()
@click.option("--keep-records", is_flag=True, help="Write records and secrets too, and what is no Kafka traffic.")
def capture(first: tuple[str, ...], more: tuple[str, ...], out: Path, cluster: str, keep_records: bool) -> None:
    """Write TCP frames as the Parquet table that replay and monitor read.

    \b
    Example:
      wirecheck capture -r incident.pcapng --out frames/
    """
    summary = write_frames([Path(name) for name in (*first, *more)], out, cluster, keep_records=keep_records)
    for line in summary.input_errors:
        click.echo(f"wirecheck: {line}", err=True)
    click.echo(f"{summary.frames:,} frames in {len(summary.files):,} files under {out}", err=True)
