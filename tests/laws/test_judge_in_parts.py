"""The law of the judge in parts: whatever is said, in whatever batches, the rows that stand are those of one judge.

What is beyond a bound is left out: each part has the room of its own subjects. So is a row that two subjects tell under
one identity (a topic by each of two names of its id, a finding of one client id at two addresses): which of them stands
last is decided for no judge.
"""

import random
import zlib
from collections import Counter
from dataclasses import replace

import pytest

from tests.judge.lab import Lab, Said, exchanged, ns, open_rows
from tests.judge.test_checks import CASES
from tests.laws.test_judge import absurd
from tests.scenarios.roads import Scenario, frames
from wirecheck.capture.frames import Mark
from wirecheck.judge.checks.catalogue import CHECKS
from wirecheck.judge.checks.declared_reads import elsewhere
from wirecheck.judge.checks.evaluate import UNHURRIED
from wirecheck.judge.claims.claim import unpack
from wirecheck.judge.claims.extraction import claims
from wirecheck.judge.judge import Judge
from wirecheck.judge.parts.judge_in_parts import MOST_ROUNDS, JudgeInParts
from wirecheck.judge.parts.part import Part
from wirecheck.judge.parts.part_message import unpacked
from wirecheck.streaming.steps import tagged
from wirecheck.streaming.steps.cells import from_cell
from wirecheck.streaming.steps.decode_step import Claimed
from wirecheck.streaming.steps.follow_step import Marks, Progress
from wirecheck.streaming.steps.judge_step import Frontiers
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings

SHARDS = (1, 4, 32)
FAR = {code for code, check in CHECKS.items() if elsewhere(check.spaces, check.reads)}
SAID = sorted((code, case) for code, case in CASES if code in FAR or case.startswith("fires"))
"""Where checks fire, and every case of those that read what may be at home in another part."""


class Apart(JudgeInParts):
    """Parts that are made anew out of what they keep, each time they have spoken."""

    def __init__(self, label, shards):
        super().__init__(label, shards)
        self.kept = [{} for _ in self.parts]

    def deliver(self, senders):
        numbers = [sender.number for sender in senders]
        spoken = [(to, said.packed()) for number in numbers for to, said in self.parts[number].messages().items()]
        for number in numbers:
            self.kept[number].update(self.parts[number].shards())
            self.parts[number] = Part(self.directory.label, number, self.shards, self.kept[number].get)
        self.directory = self.parts[0]
        for number, message in spoken:
            self.parts[number].receive(unpacked(message))
        return bool(spoken)


def contested(judge):
    """Rows that several subjects tell under one identity."""
    cells = [rows for shard in judge.emitted.shards.values() for rows in shard["cells"].values()]
    return {name for name, subjects in Counter(name for rows in cells for name in rows).items() if subjects > 1}


def same(rows, one, others):
    """Whether the rows that stand are those of one judge, but for what is decided for none."""
    undecided = contested(one)
    mine, theirs = (
        {f"{table}|{key}": body for table, found in open_rows(told).items() for key, body in found.items()}
        for told in (rows, others)
    )
    assert {name: body for name, body in theirs.items() if name not in undecided} == {
        name: body for name, body in mine.items() if name not in undecided
    }
    return bool(mine)


def of_lab(lab, judge, batches):
    rows = []
    for number, batch in enumerate(batches):
        judge.absorb(claim.copy() for claim in batch)
        if number == len(batches) - 1:
            for agent, (at, ended) in (lab.agents or {"agent": (lab.until, True)}).items():
                judge.progress(agent, ns(at), ended=ended)
                judge.hear(Said(agent))
        rows += judge.rows()
    return rows


def cut(lab, dice):
    """What each connection says, in two batches."""
    said = [list(claims(*exchanged(talk))) for talk in lab.talks]
    dice.shuffle(said)
    at = dice.randrange(len(said) + 1)
    return [[claim for part in half for claim in part] for half in (said[:at], said[at:])]


@pytest.mark.parametrize(("code", "case"), SAID, ids=lambda part: part)
def test_every_check_finds_alike(code, case):
    seed = zlib.crc32(f"{code}{case}".encode())
    lab = Lab()
    CASES[code, case](lab)
    batches = cut(lab, random.Random(seed))
    one, parts = Judge("lab"), Apart("lab", SHARDS[seed % 3])
    assert same(of_lab(lab, one, batches), one, of_lab(lab, parts, batches))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_decodes_is_judged_alike(seed):
    lab = absurd(seed)
    batches = cut(lab, random.Random(seed))
    one, parts = Judge("lab"), Apart("lab", 4)
    assert same(of_lab(lab, one, batches), one, of_lab(lab, parts, batches))


class Recorded(Loop):
    """A loop that keeps what the judge of each batch would be given."""

    def __init__(self, settings):
        super().__init__(settings)
        self.given = []

    def judge(self, claims):
        self.given.append(list(claims))
        return iter(())


class Judging(Loop):
    """A loop behind decoding, that is a new one before each turn."""

    def follow(self, packed):
        yield from packed

    def turn(self, packed):
        again = Judging(self.settings)
        again.shards, again.parts, again.turns = self.shards, self.parts, self.turns
        Loop.turn(again, packed)
        self.turns, self.told = again.turns, [*self.told, *again.told]


def told_so_far(loop):
    """The rows that stand, and what is counted."""
    standing = [(table, row) for table, found in loop.result().rows.items() for row in found]
    rows = {f"{table}|{row['id']}": {**row, "revision": 0} for table, row in standing}
    counts = Counter()
    for row in {row["id"]: row for row in loop.rows("totals")}.values():
        if row["measure"] != "finding_revisions":
            counts[row["measure"], row["detail"]] += row["count"]
    return rows, counts


def of_capture(judge, given, buckets):
    frontiers, rows = Frontiers(buckets, None), []
    for batch in given:
        for row in batch:
            if row.route == tagged.CLAIMS:
                judge.absorb(unpack(from_cell(row.cell, Claimed).claims))
            elif row.route == tagged.PROGRESS:
                frontiers.moved(row.bucket, from_cell(row.cell, Progress))
            elif row.route == tagged.MARKS:
                judge.hear(from_cell(row.cell, Marks, Mark))
        for one in frontiers.common():
            judge.progress(one.agent, one.ts_ns, one.ended)
        rows += judge.rows()
    return rows


@pytest.mark.parametrize(
    ("name", "buckets"), [("zk28-recreate", 3), ("two-clusters-one-wire", 3), ("kraft4-groups-recreate", 1)]
)
def test_a_cluster_is_judged_alike(name, buckets, tmp_path):
    loop = Recorded(Settings(buckets=buckets))
    for file in frames([Scenario(name).pcap], tmp_path, roll_bytes=200_000):
        loop.batch([file])
    one = Judge("default")
    expected = of_capture(one, loop.given, buckets)
    for shards in SHARDS:
        parts = JudgeInParts("default", shards)
        assert same(expected, one, of_capture(parts, loop.given, buckets))
        assert parts.rounds < MOST_ROUNDS


@pytest.mark.parametrize(("name", "buckets"), [("zk28-recreate", 3), ("two-clusters-one-wire", 1)])
def test_turns_tell_what_one_judge_tells_batch_by_batch(name, buckets, tmp_path):
    settings = Settings(buckets=buckets)
    loop = Recorded(settings)
    for file in frames([Scenario(name).pcap], tmp_path, roll_bytes=200_000):
        loop.batch([file])
    one, expected = Judging(settings), []
    for batch in loop.given:
        one.rows_of(batch)
        expected.append(told_so_far(one))
    undecided = {name for shards in one.shards.values() for name in contested(Judge("default", shards.get))}
    for shards in SHARDS[1:]:
        parts = Judging(replace(settings, shards=shards))
        for batch, (rows, counts) in zip(loop.given, expected, strict=True):
            parts.rows_of(batch)
            found, counted = told_so_far(parts)
            some = {*found, *rows} - undecided
            if batch is not loop.given[-1]:  # these are told the sooner the more turns there are
                some = {name for name in some if name.partition("|")[0] not in UNHURRIED.values()}
            assert {name: found.get(name) for name in some} == {name: rows.get(name) for name in some}
            assert counted == counts
            assert not parts.turns.open
    assert one.rows("topics")
