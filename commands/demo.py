"""`wirecheck demo`: a first minute, with a capture that comes with wirecheck.

Knows: where the example is and what to try with it. Refuses to know how it is checked (replay).
"""

import shutil
from pathlib import Path

import click

from wirecheck.commands import options
from wirecheck.commands.ending import Stop
from wirecheck.commands.outputs import for_its_user_alone

EXAMPLE = Path(__file__).parent.parent / "example.pcap.gz"
CAPTURE, PAGE = "capture.pcap.gz", "report.html"


@click.command(short_help="Try wirecheck with a capture that comes with it.")
@click.option(
    "--out",
    type=options.TARGET,
    default="wirecheck-demo",
    show_default=True,
    help="Write the capture and the HTML report to this folder.",
)
@options.quiet
@click.pass_context
def demo(ctx: click.Context, out: Path) -> None:
    """Check an example: a Kafka 3.9 cluster in which one broker has a topic under another topic ID than the others.

    The capture and an HTML report are written to a folder, so that you can try other commands with them.

    \b
    Examples:
      wirecheck demo
      wirecheck demo --out /tmp/demo && open /tmp/demo/report.html
    """
    from wirecheck.commands.replay import replay

    capture, page = out / CAPTURE, out / PAGE
    with for_its_user_alone():
        try:
            out.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(example(), capture)
        except OSError as error:
            raise Stop(f"{error.filename or out}: {error.strerror}; choose another --out") from error
    words = [str(capture), "--engine", "local", "--fail-on", "never", "--report", str(page)]
    try:
        replay.main(words, prog_name="wirecheck replay", parent=ctx, standalone_mode=False)
    finally:
        if page.exists():
            click.echo(f"\nOpen the report in a browser: {page}\nNext: wirecheck decode {capture} --error")


def example() -> Path:
    """Stop where the installation has none."""
    if not EXAMPLE.is_file():
        raise Stop(f"{EXAMPLE}: the example is missing from this installation; install wirecheck again")
    return EXAMPLE
