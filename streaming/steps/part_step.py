"""Stateful, by label and part: what one part of a label is given, in; its rows and what it tells other parts, out.

Knows: which row goes to which part, and that a total is counted where it is first at home. What parts tell each other
is `judge.parts`'s affair, when they hear it `turns.py`'s.
Rule: a part hears what others told in the batch before, files what it is given, judges, and tells; it never waits.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from wirecheck.capture import frames
from wirecheck.judge.claims.claim import Claim, pack, unpack
from wirecheck.judge.parts.homes import DIRECTORY, part_of, parts_of
from wirecheck.judge.parts.part import Part
from wirecheck.judge.parts.part_message import unpacked
from wirecheck.streaming.steps import tagged
from wirecheck.streaming.steps.cells import from_cell, to_cell
from wirecheck.streaming.steps.collector_pause import collector_paused
from wirecheck.streaming.steps.decode_step import Claimed
from wirecheck.streaming.steps.follow_step import Marks, Progress
from wirecheck.streaming.steps.judge_step import FRONTIERS, TOTALS, Frontiers, Load, Shards, told
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import Tagged
from wirecheck.streaming.steps.totals import Totals


def dealt(row: Tagged, settings: Settings) -> Iterator[Tagged]:
    """What one row of claims, or of what agents say, is for each part; its bucket is the part's number."""
    match row.route:
        case tagged.CLAIMS:
            claimed: Claimed = from_cell(row.cell, Claimed)
            by_part: dict[int, list[Claim]] = defaultdict(list)
            for claim in unpack(claimed.claims):
                for number in parts_of(claim, settings.shards):
                    by_part[number].append(claim)
            for number, claims in sorted(by_part.items()):
                yield Tagged(row.label, number, tagged.CLAIMS, pack(claims))
            if claimed.exchanges:
                yield Tagged(row.label, 1 + row.bucket % settings.shards, tagged.EXCHANGES, claimed.exchanges)
        case tagged.PROGRESS:
            progress: Progress = from_cell(row.cell, Progress)
            yield row._replace(bucket=DIRECTORY, cell=to_cell((row.bucket, progress)))
        case tagged.MARKS:
            yield row._replace(bucket=DIRECTORY)
        case _:
            yield row


@collector_paused()
def part_rows(
    label: str, number: int, rows: Iterable[Tagged], load: Load, settings: Settings
) -> tuple[list[Tagged], Shards]:
    """One batch of one part: the rows to write, what other parts are to hear, and the shards that changed."""
    part = Part(label, number, settings.shards, load, settings.judge)
    part.agents.awaited = settings.awaited(label)
    frontiers, totals = Frontiers(settings.buckets, load(FRONTIERS)), Totals(load(TOTALS))
    passing: list[Tagged] = []
    for row in rows:
        match row.route:
            case tagged.MAIL:
                part.receive(unpacked(row.cell))
            case tagged.CLAIMS:
                claims = unpack(row.cell)
                totals.claims((claim for claim in claims if counts(claim, part)), part.ledger)
                part.absorb(claims)
            case tagged.EXCHANGES:
                passing.append(row._replace(bucket=-1))
            case tagged.PROGRESS:
                frontiers.moved(*from_cell(row.cell, Progress))
            case tagged.MARKS:
                marks: Marks = from_cell(row.cell, Marks, frames.Mark)
                part.hear(marks)
                totals.hear(marks)
                if marks.file_seq:
                    totals.put("followed_files", marks.agent, marks.file_seq)
    for frontier in frontiers.common():
        if frontier.ts_ns:  # else nothing of this agent could be read so far
            part.show(frontier.agent, frontier.ts_ns, ended=frontier.ended)
            totals.put("judged_ns", frontier.agent, frontier.ts_ns)
    tables = told(part, totals)
    mail = [Tagged(label, to, tagged.MAIL, said.packed()) for to, said in part.messages().items()]
    kept = {FRONTIERS: frontiers.cell()} if number == DIRECTORY else {}
    return [*tables, *passing, *mail], {**part.shards(), **kept, TOTALS: totals.cell()}


def counts(claim: Claim, part: Part) -> bool:
    """Whether a claim that several parts are given adds to this part's totals."""
    first = next(claim.subjects(), None)
    home = DIRECTORY if first is None else part_of(first, part.count)
    return home == part.number and claim.last.ts_ns >= part.oldest_ns
