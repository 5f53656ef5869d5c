"""`wirecheck score`: how right verdicts are, over captures with the truth beside them.

Knows: the columns in which that is printed, and the exit status. Refuses to know what is right (session/score.py).
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirecheck.commands import completion, options
from wirecheck.commands.ending import FOUND
from wirecheck.commands.listing import Cells, Listing
from wirecheck.commands.screen import note
from wirecheck.document import document

if TYPE_CHECKING:
    from wirecheck.session.score import KindScore, Score

FOLDER = click.Path(path_type=Path)


@click.command(cls=options.Sections, short_help="Score verdicts against captures with a known truth.")
@click.argument("folders", nargs=-1, required=True, type=FOLDER, metavar="DIR...", shell_complete=completion.path)
@click.option(
    "--by",
    type=click.Choice(("capture", "kind")),
    default="capture",
    help="One line a capture, or one a kind of finding.",
)
@options.keylog
@options.dialect
@options.form("json", "csv")
@options.quiet
def score(folders: tuple[Path, ...], by: str, form: str) -> None:
    """Check each capture below DIR that has a truth.json beside it, and compare.

    Each line has how many clients are hurt by the truth, how many of them were found, left in doubt or missed, which
    healthy clients were called hurt (FALSE) or in doubt, and how many findings were expected and found. WRONG names
    what was missed, and what is false. The form of truth.json is in docs/corpus.md.

    Exit status: 1 if a hurt client or an expected finding was missed, a healthy client was called hurt, or a violation
    or anomaly is there that the truth does not allow.

    \b
    Examples:
      wirecheck score tests/scenarios/work
      wirecheck score tests/scenarios examples --by kind
      wirecheck score corpus/ --format json
    """
    from wirecheck.session.score import by_kind, scores, total

    every = list(scores(options.session(), list(folders)))
    if by == "kind":
        KINDS.show(by_kind(every), form, every=True)
    else:
        LISTING.show(every, form, every=True)
    whole = total(every)
    if form == "text":
        note(sentence(whole))
    sys.exit(0 if whole.is_right else FOUND)


def sentence(whole: "Score") -> str:
    """`18 captures: 17 of 24 hurt clients found, 7 in doubt, 0 missed; 0 healthy ones accused, 0 in doubt; ...`."""
    clients = (
        f"{whole.found} of {whole.hurt} hurt clients found, {whole.in_doubt} in doubt, {len(whole.missed)} missed; "
        f"{len(whole.false)} healthy ones accused, {len(whole.doubted)} in doubt"
    )
    codes = f"{len(whole.codes_found)} of {whole.expected} expected findings, {len(whole.codes_false)} false"
    return f"{whole.capture}: {clients}; {codes}"


def cells(one: "Score", dated: bool) -> Cells:  # noqa: ARG001 - as Listing calls it
    """`poison  2  1  1  0  0  0  0 of 0`."""
    wrong = [*one.missed, *one.codes_missed, *(f"{each} (false)" for each in (*one.false, *one.codes_false))]
    return [
        (one.capture, "topic"),
        *counts(one, one.hurt),
        (f"{len(one.codes_found)} of {one.expected}", "count"),
        (", ".join(wrong), "details"),
    ]


def kind_cells(one: "KindScore", dated: bool) -> Cells:  # noqa: ARG001 - as Listing calls it
    """`TID001  9  9  0  0  0  0`."""
    wrong = [*one.missed, *(f"{each} (false)" for each in one.false)]
    return [
        (one.kind, "topic"),
        *counts(one, one.expected),
        (", ".join(wrong), "details"),
    ]


def counts(one: "Score | KindScore", expected: int) -> Cells:
    """`2  1  1  0  0  0`."""
    return [
        (str(expected), "count"),
        (str(one.found), "ok" if one.found == expected else "latency"),
        (str(one.in_doubt), "count"),
        (str(len(one.missed)), "error" if one.missed else "ok"),
        (str(len(one.false)), "error" if one.false else "ok"),
        (str(len(one.doubted)), "latency" if one.doubted else "ok"),
    ]


LISTING: "Listing[Score]" = Listing(
    "captures",
    document,
    cells,
    lambda _one: (),
    headings=("capture", "hurt", "found", "in doubt", "missed", "false", "doubted", "findings", "wrong"),
)
KINDS: "Listing[KindScore]" = Listing(
    "kinds",
    document,
    kind_cells,
    lambda _one: (),
    headings=("kind", "expected", "found", "in doubt", "missed", "false", "doubted", "wrong"),
)
