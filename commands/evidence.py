"""`wirecheck evidence`: the frames behind a finding, as a capture that proves it alone.

It succeeds only if the written file, checked again, gives the same finding ID.
"""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import completion, options
from wirecheck.commands.ending import Stop
from wirecheck.commands.findings import one_finding
from wirecheck.commands.outputs import need_place
from wirecheck.session.inputs import files_in, holds_tables, places, there
from wirecheck.session.local_check import checked_with_frames, frames_of, judged_frames, write_frames
from wirecheck.session.results import answers, say_unread
from wirecheck.session.session import Session

if TYPE_CHECKING:
    import pyarrow as pa

    from wirecheck.capture.evidence.pcapng_export import Pair
    from wirecheck.story.verdict import Finding


@click.command(cls=options.Sections, short_help="Write the frames behind a finding as pcapng.")
@click.argument("finding", shell_complete=completion.code)
@click.argument("inputs", nargs=-1, metavar="[INPUT]...", shell_complete=completion.path)
@options.tables
@click.option("-o", "--output", "target", type=options.TARGET, required=True, metavar="FILE", help="Write this pcapng.")
@options.cluster
@options.keylog
@options.dialect
@click.option("--keep-records", is_flag=True, help="Do not redact records and secrets, if INPUT has them.")
@click.option("--minimal", is_flag=True, help="Write only the messages that the finding needs, not whole connections.")
@click.option("--with-keys", is_flag=True, help="Add the keys of the finding's TLS connections to the file.")
@options.principals
def evidence(
    finding: str,
    inputs: tuple[str, ...],
    out: Path | None,
    target: Path,
    *,
    minimal: bool,
    with_keys: bool,
    no_principals: bool,
    **reading: Any,
) -> None:
    """Write the frames behind a finding as pcapng.

    FINDING is a finding ID (a unique prefix is enough) or a check code that has exactly one finding. INPUT is the
    captures or frames directories with the finding. With --from, the finding is read from a result directory; without
    INPUT, the captures that it names are read.

    Wireshark opens the file, and its comments name the finding. The command verifies that `wirecheck replay` finds the
    same finding in the file.

    The file has whole connections. With --minimal, it has the messages that the finding names, and others only if the
    finding does not appear without them. Counts and times of the finding may then be smaller; its ID is the same.
    TLS connections and those of a blind spot stay whole.

    TLS frames of captures stay encrypted; --with-keys adds the keys that they need. An agent's frames contain only
    the plaintext that was not redacted. With --no-principals, forwarded requests (Envelope) have no principal or
    address, and TLS frames are written decrypted.

    \b
    Examples:
      wirecheck evidence TID002 incident.pcapng -o tid002.pcapng
      wirecheck evidence TID002 incident.pcapng --minimal -o tid002.pcapng
      wirecheck evidence lltrvgv2 --from verdict/ -o finding.pcapng
      wirecheck evidence lltrvgv2 frames/ --from verdict/ -o finding.pcapng
    """
    from wirecheck.streaming.steps.settings import Settings

    if no_principals and (with_keys or reading["keep_records"]):
        raise click.UsageError(f"give --no-principals or {'--with-keys' if with_keys else '--keep-records'}, not both")
    folders_of_tables = [name for name in inputs if holds_tables(Path(name))]
    if folders_of_tables:
        raise click.UsageError(f"{folders_of_tables[0]} holds result tables: use --from {folders_of_tables[0]}")
    need_place(target, inputs, "-o")
    session = options.session()
    with TemporaryDirectory(prefix="wirecheck-") as scratch:
        folder = Path(scratch)
        found: Finding | None = None
        if out is not None:
            found = one_finding(answers(session, (), out, reading["cluster"]).findings(), finding)
            inputs = inputs or sources_of(found)
        elif not inputs:
            raise click.UsageError("name the input: captures, frames directories, or --from OUT")
        if found is None:
            settings = Settings(dialects=options.dialects())
            check, files = checked_with_frames(session, inputs, folder / "frames", settings=settings, **reading)
            result = check.run.result()
            say_unread(session, result)
            found = one_finding(result.findings(), finding)
        else:
            files = files_in(frames_of(session, inputs, folder / "frames", **reading))
        captures = [] if no_principals else [path for path in places(inputs) if not path.is_dir()]
        search = Search(
            found, files, folder, reading["keep_records"], captures, with_keys, not no_principals, session, minimal
        )
        frames, connections = search.proven(target)
    for line in search.notes:
        click.echo(f"wirecheck: {line}", err=True)
    click.echo(
        f"{found.code} {found.id}: {frames:,} frames of {connections} connections in {target}; "
        "a replay of them gives the same finding",
        err=True,
    )


def sources_of(finding: "Finding") -> tuple[str, ...]:
    """The pcaps that a finding names, where they still are."""
    named = {side.frame.source for side in finding.sides if side.frame} - {""}
    missing = sorted(name for name in named if not there(Path(name)))
    if missing or not named:
        what = f"{missing[0]} is not here" if missing else "the finding names no capture file"
        raise Stop(f"{what}: name the pcaps or the folder of frames it was found in")
    return tuple(sorted(named))


@dataclass
class Search:
    """One finding, looked for in fewer and fewer connections."""

    finding: "Finding"
    files: list[Path]
    scratch: Path
    keep_records: bool
    captures: list[Path] = field(default_factory=list)
    with_keys: bool = False
    principals: bool = True
    session: Session = Session()  # noqa: RUF009 - it is frozen
    minimal: bool = False
    notes: list[str] = field(default_factory=list)
    """What to say of the file besides."""
    removed: bool = False
    """Whether messages that the finding does not need were removed."""

    def proven(self, target: Path) -> tuple[int, int]:
        """Write the smallest capture that was seen to prove it; how many frames and connections it has."""
        from wirecheck.capture.evidence import pcapng_export as capture
        from wirecheck.capture.evidence.minimal_subset import enough
        from wirecheck.decode.peer import Conversation

        every = capture.connections(self.files, self.finding.label)
        pairs = {capture.Pair.of(*Conversation.of(side.connection or "")) for side in self.finding.sides}
        found = enough(pairs, every, self.proves)
        if found is None:
            raise Stop(
                f"{self.finding.id}: a replay of these frames does not give this finding, so nothing is written; "
                "give all captures or folders in which it was found"
            )
        table = self.frames(found)
        try:
            if self.minimal:
                table = self.fewest(table)
            table, keys = self.as_captured(table)
            capture.write(target, table, self.title(), self.comments(), keys)
        except OSError as error:
            raise Stop(f"{target}: {error.strerror}; choose another -o") from error
        return table.num_rows, len(found)

    def fewest(self, table: "pa.Table") -> "pa.Table":
        """The frames of the messages that are needed, and a note of what that saves."""
        from wirecheck.capture.evidence.minimal_messages import fewest

        if self.finding.kind == "visibility":
            self.notes.append("--minimal: a blind spot is about missing bytes, so its connections stay whole")
            return table
        found = fewest(table, set(self.comments()), self.gives_it)
        if found is None or found.num_rows == table.num_rows:
            self.notes.append("--minimal: the finding needs all frames of its connections")
            return table
        self.removed = True
        sizes = [f"{part.num_rows:,} frames ({kilobytes(part)} of payload)" for part in (table, found)]
        self.notes.append(f"--minimal: {sizes[1]} instead of {sizes[0]}; a replay reports what was removed as gaps")
        return found

    def as_captured(self, table: "pa.Table") -> "tuple[pa.Table, bytes]":
        """The frames with those inside TLS encrypted, and the keys they need; as they are where that proves nothing."""
        from wirecheck.capture.evidence.original_frames import encrypted, key_lines

        if not any(table["decrypted"].to_pylist()):
            return table, b""
        found = encrypted(table, self.captures)
        if found is not None:
            keys = key_lines(found, options.key_logs(), self.captures) if self.with_keys else b""
            if self.gives_it(found, keys):  # without keys in it by those of --keylog
                if not self.with_keys:
                    self.notes.append("its TLS frames are encrypted; give --keylog to read it")
                return found, keys
        self.notes.append(
            "its TLS frames are decrypted: it has the plaintext that is not redacted, and new sequence numbers"
        )
        return table, b""

    def frames(self, connections: "set[Pair]") -> "pa.Table":
        from wirecheck.capture.evidence import pcapng_export as capture

        table = capture.selected(self.files, self.finding.label, connections)
        return table if self.principals else without_principals(table)

    def proves(self, connections: "set[Pair]") -> bool:
        """Whether these connections alone, written and read again as a user would, give the same finding."""
        return self.gives_it(self.frames(connections))

    def gives_it(self, table: "pa.Table", keys: bytes = b"") -> bool:
        """Whether a capture of these frames gives the finding."""
        from wirecheck.capture.evidence import pcapng_export as capture

        with TemporaryDirectory(dir=self.scratch) as scratch:
            folder = Path(scratch)
            capture.write(folder / "try.pcapng", table, self.title(), {}, keys)
            files = write_frames(
                self.session,
                [folder / "try.pcapng"],
                folder / "frames",
                self.finding.label,
                keep_records=self.keep_records,
            ).files
            return any(one.id == self.finding.id for one in judged_frames(self.session, files).findings())

    def title(self) -> str:
        finding = self.finding
        label = "" if finding.label == "default" else f" --cluster {finding.label}"
        removed = "\nmessages that it does not need were removed: their bytes are missing" if self.removed else ""
        of = "an unknown cluster" if finding.cluster is None else f"cluster {finding.cluster}"
        return (
            f"{finding.code} {finding.name}: {finding.summary}\n"
            f"finding {finding.id} of {of}; wirecheck replay{label} finds it in this file{removed}"
        )

    def comments(self) -> dict[tuple[str, int], str]:
        """By frame what it says in the finding."""
        return {
            (side.frame.source, number): f"{self.finding.code} {self.finding.id}: {side.claim}"
            for side in self.finding.sides
            if side.frame
            for number in {side.frame.first, side.frame.last}
        }


def kilobytes(frames: "pa.Table") -> str:
    import pyarrow.compute as pc

    return f"{(pc.sum(frames['payload_len']).as_py() or 0) / 1000:,.1f} kB"


def without_principals(frames: "pa.Table") -> "pa.Table":
    """The same frames, redacted once more."""
    from itertools import chain

    import pyarrow as pa

    from wirecheck.capture.trim.trimmer import Trim

    trim = Trim(principals=False)
    rows = [*chain.from_iterable(map(trim.add, frames.combine_chunks().to_batches())), *trim.drain()]
    return pa.Table.from_batches(rows, frames.schema)
