"""`wirecheck anonymize`: a capture that may be shared, with other names of the same length."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirecheck.commands import completion, options
from wirecheck.commands.ending import Stop
from wirecheck.commands.outputs import need_place
from wirecheck.session.anonymize import anonymize as anonymized
from wirecheck.session.anonymize import read_key, write_key
from wirecheck.wording import reason_of

if TYPE_CHECKING:
    from wirecheck.session.anonymize import Anonymized


@click.command(cls=options.Sections, short_help="Write a capture under other names, to share it.")
@click.argument("name", metavar="FILE", shell_complete=completion.path)
@click.option("-o", "--output", "target", type=options.TARGET, required=True, metavar="FILE", help="Write this pcapng.")
@click.option(
    "--key-file", "key_file", type=options.TARGET, metavar="FILE",
    help="Write the key and the names to this file, which stays with you; if it exists, use its names.",
)  # fmt: skip
@options.keylog
def anonymize(name: str, target: Path, key_file: Path | None) -> None:
    """Write a capture under other names of the same length, to share it with a report.

    Names of topics, groups, clients, members, hosts, principals, transactions, racks and clusters, topic IDs and
    addresses are replaced, everywhere by the same. Records, credentials, configuration values and all that is not
    readable as Kafka become zeros. Ports, broker IDs, partitions, offsets, versions, errors and times stay.

    Without --key-file, the key is random and forgotten: then there is no way back. With it, the file maps back, and
    a second capture gets the same names.

    TLS must be decrypted (--keylog), or the capture is refused.

    \b
    Examples:
      wirecheck anonymize incident.pcapng -o shared.pcapng
      wirecheck anonymize incident.pcapng -o shared.pcapng --key-file names.json
    """
    from wirecheck.capture.anonymize.names import Names

    session = options.session()
    need_place(target, [name, *([str(key_file)] if key_file else [])], "-o")
    if key_file is not None:
        need_place(key_file, [name], "--key-file")
    names = read_key(key_file) if key_file is not None and key_file.exists() else Names()
    try:
        found = anonymized(session, name, target, names)
        if key_file is not None:
            write_key(key_file, names)
    except OSError as error:
        raise Stop(f"{error.filename or target}: {reason_of(error)}; choose another -o") from error
    click.echo("\n".join(sentences(found, target)), err=True)


def sentences(found: "Anonymized", target: Path) -> list[str]:
    """What was written, and what was not."""
    written = found.written
    lines = [f"{target}: {written.frames:,} frames under other names"]
    for count, what in (
        (found.not_tcp, "packets that are no TCP segments were dropped"),
        (written.foreign_frames, "frames of connections without Kafka were dropped"),
        (written.outside_bytes, "bytes outside of messages are zeros"),
        (
            sum(written.zeroed.values()),
            f"bytes could not be mapped and are zeros ({', '.join(sorted(written.zeroed))})",
        ),
    ):
        if count:
            lines.append(f"wirecheck: {count:,} {what}")
    return [*lines, *(f"wirecheck: {error}" for error in found.errors)]
