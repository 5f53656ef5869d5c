"""What is old leaves the ledger; what was told stands, and what is young is judged as if nothing had left."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.depth import examples, some
from tests.judge.lab import Lab, ns, open_rows
from tests.judge.made import EAST, ID_1, ID_2, ID_3, WEST, S, bound, claim, cluster, outcomes
from tests.judge.test_checks import CASES
from wirecheck.judge.checks.lone_readers import longest_pause
from wirecheck.judge.claims.outcomes import MOST_SLOTS, SUCCESS, Run
from wirecheck.judge.ledger.ageing import SlotRange, folded, folded_claim, folded_ends
from wirecheck.judge.revisions.judge import Judge
from wirecheck.judge.thresholds import Settings

HOUR = 3600
DAY = 24 * HOUR


def connection(number, at):
    key = ("10.0.0.9", EAST, f"10.0.0.9:{number}", at * S)
    return claim("connection", *key, at=at, until=at + 5, peak={"frames": 9, "from_start": 1})


def judged(batches, settings=None):
    """The judge after batches of (watermark in seconds, claims), and all it told."""
    judge, rows = Judge("lab", settings=settings), []
    for until, claims in batches:
        judge.absorb(part.copy() for part in claims)
        judge.progress("agent", int(until * S), ended=False)
        rows += judge.rows()
    return judge, rows


def held(judge):
    return {
        claim.identity
        for shard in judge.ledger.loaded.values()
        for subject in shard
        for claim in shard[subject].values()
    }


def test_a_connection_leaves_a_day_after_its_last_packet_and_its_rows_stand():
    batches = [(hour * HOUR, [connection(hour, hour * HOUR - 60)]) for hour in range(1, 100)]
    judge, rows = judged([*batches, (99 * HOUR + 60, [])])
    assert len(held(judge)) <= 26
    assert sum(len(shard["rows"]) for shard in judge.emitted.shards.values()) <= 27
    frames = [row["count"] for row in open_rows(rows)["coverage"].values() if row["measure"] == "frames"]
    assert sum(frames) == 99 * 9
    assert not any(row.body.get("withdrawn") for row in rows)


def test_a_gap_stays_as_long_as_its_connection():
    long = connection(1, 0)
    gap = claim("gap", *long.key, 5 * S, "response", 100, at=5, peak={"since": -4 * S})
    later = claim("connection", *long.key, at=3 * DAY)
    judge, _ = judged([(10, [long, gap]), (3 * DAY, [later])])
    assert {"connection", "gap", "missing"} <= {kind for kind, _ in held(judge)}
    judge, rows = judged([(10, [long, gap]), (3 * DAY, []), (4 * DAY, []), (5 * DAY, [])])
    assert {kind for kind, _ in held(judge)} <= {"busy"}
    assert [row["code"] for row in open_rows(rows)["findings"].values()] == ["VIS001"]


def test_a_binding_lasts_and_an_id_that_ended_leaves_whole():
    story = [cluster(), bound("orders", ID_1, 1, until=20), bound("orders", ID_2, 30), bound("calm", ID_3, 2)]
    story.append(claim("deletion", "orders", ID_1, "delete-topics", EAST, None, at=21))
    judge, rows = judged([(60, story), (3 * DAY, [])])
    names = {key for kind, key in held(judge) if kind == "binding"}
    assert {key[1] for key in names} == {ID_2, ID_3}
    found = open_rows(rows)
    assert {(row["name"], row["topic_id"]) for row in found["topics"].values()} == {
        ("orders", ID_1), ("orders", ID_2), ("calm", ID_3),
    }  # fmt: skip
    assert [row["code"] for row in found["findings"].values()] == ["TID001"]


def test_what_comes_back_after_it_was_settled_is_a_later_revision():
    uses = [claim("client", "c", "10.0.0.99", EAST, at=at, count=7, tally={"Fetch:13": 7}) for at in (5, 3 * DAY)]
    _, rows = judged([(60, uses[:1]), (2 * DAY, []), (3 * DAY + 60, uses[1:])])
    assert [(row.revision, row.body["requests"]) for row in rows if row.table == "clients"] == [(1, 7), (2, 7)]


def test_slots_older_than_the_horizon_leave_a_claim_that_stays_and_its_finding_stands():
    def use(day):
        said = outcomes(*((day * DAY + at, 100, 3) for at in range(0, 100, 10)))
        return claim("use", ID_1, "Fetch", "c", "10.0.0.99", EAST, at=day * DAY, until=day * DAY + 100, outcomes=said)

    def calm(day):
        return claim("use", ID_1, "Fetch", "c", "10.0.0.99", EAST, at=day * DAY, outcomes=outcomes((day * DAY, 0)))

    batches = [(day * DAY + 200, [use(day) if day == 1 else calm(day)]) for day in range(1, 30)]
    judge, rows = judged(batches)
    (left,) = judge.ledger.claims("use", "id", ID_1)
    assert (left.count, left.outcomes) == (29, outcomes((29 * DAY, 0)))
    found = open_rows(rows)["findings"].values()
    assert [(row["code"], row["count"]) for row in found if row["code"] == "FET001"] == [("FET001", 30)]


def test_successes_of_hours_take_a_few_slots_and_a_streak_among_them_stays_as_it_was():
    def use(minute):
        second = HOUR * 24 + minute * 60
        errors = [(second + at, 100, 3) for at in range(0, 50, 10)] if minute == 100 else []
        said = outcomes(*((second + at, 0) for at in range(0, 60, 10) if minute not in {99, 100, 101}), *errors)
        who = ("use", ID_1, "Fetch", "c", "10.0.0.99", EAST)
        return claim(*who, at=second, until=second + 59, outcomes=said, peak={"used": int((second + 59) * S)})

    batches = [(HOUR * 24 + minute * 60 + 60, [use(minute)]) for minute in range(8 * 60)]
    judge, rows = judged(batches)
    (kept,) = judge.ledger.claims("use", "id", ID_1)
    assert len(kept.outcomes.of(SUCCESS)) < 3 * 60 + 8 * 6 + 2 * 60
    assert sum(run.count for run in kept.outcomes.runs({SUCCESS})) == (8 * 60 - 3) * 6
    found = [row for row in rows if row.table == "findings" and row.body["code"] == "FET001"]
    assert [row.body["count"] for row in found][-1] == 15
    assert {row.body["state"] for row in found} == {"open"}


def test_what_was_looked_through_before_is_not_looked_at_again():
    said = outcomes(*((86_400 + second, 0) for second in (0, 10, 600, 610)))
    assert folded(said, (), SlotRange(86_400 // 10 + 60, 86_400 // 10 + 120))
    assert [run.count for run in said.runs({SUCCESS})] == [1, 1, 2]
    assert not folded(said, (), SlotRange(86_400 // 10 + 60, 86_400 // 10 + 120))
    assert folded(said, (), SlotRange(86_400 // 10, 86_400 // 10 + 120))


def test_a_silence_between_successes_stays_when_they_are_counted_by_blocks():
    at = 86_400
    said = outcomes(*((at + second, 0) for second in (0, 8, 16, 100, 108)))
    assert folded(said, (), SlotRange(0, (at + 600) // 10))
    assert said.runs({SUCCESS}) == [Run(3, at * S, (at + 16) * S), Run(2, (at + 100) * S, (at + 108) * S)]


def fetches(*seconds, server=EAST, code=0):
    said = outcomes(*((second, code) for second in seconds))
    key = ("c", "10.0.0.99", server, "Fetch", "granted" if code == 0 else "rejected")
    return claim("activity", *key, at=seconds[0], until=seconds[-1], outcomes=said)


@pytest.mark.parametrize("pauses", [(120,), (5, 120, 300), (590, 7)])
def test_an_activity_is_counted_by_blocks_and_by_hours_and_its_longest_pause_is_kept(pauses):
    seconds = [DAY]
    while seconds[-1] < DAY + 8 * HOUR:
        seconds.append(seconds[-1] + pauses[len(seconds) % len(pauses)])
    one = fetches(*seconds)
    before = longest_pause([one])
    until = (DAY + 8 * HOUR) // 10
    assert folded_claim(one, {}, SlotRange(0, until), SlotRange(0, until - MOST_SLOTS, HOUR // 10))
    assert len(one.outcomes.of(SUCCESS)) <= 7 + 12 + 2
    assert sum(run.count for run in one.outcomes.runs()) == len(seconds)
    assert abs(longest_pause([one]) - before) <= 1
    assert max(run.last_ns for run in one.outcomes.runs()) == seconds[-1] * S


def test_what_one_server_grants_is_not_counted_by_blocks_while_another_rejects_the_same_client():
    """Else nothing would be left of the successes between the errors, and its client would have been stalled."""

    def states(minutes):
        batches = []
        for minute in range(minutes):
            at = DAY + minute * 60
            every = [fetches(*range(at, at + 60, 2)), fetches(*range(at + 1, at + 61, 2), server=WEST, code=6)]
            batches.append((at + 60, every if minute < 12 else every[:1]))
        _, rows = judged(batches)
        return {row.body["state"] for row in rows if row.table == "activities" and row.body}

    assert states(12) == states(45)


def ends(peak):
    return claim("serves", "orders", None, 0, EAST, peak=peak)


def test_ends_of_hours_that_never_moved_back_take_a_few_slots():
    growing = ends({f"at:{slot}": slot for slot in range(100, 500)} | {f"at:{slot}:1": 7 for slot in range(200, 204)})
    assert folded_ends(growing, 480)
    old = {"at:100": 100, "at:101": 101, "at:102": 102, "at:103": 103, "at:479": 479}
    recent = {f"at:{slot}": slot for slot in range(480, 500)}
    assert growing.peak == old | recent | {f"at:{slot}:1": 7 for slot in range(200, 204)}
    assert not folded_ends(growing, 480)


def test_the_first_ends_after_a_silence_and_ends_that_moved_back_stay():
    again = ends({f"at:{slot}": slot for slot in (*range(100, 110), *range(200, 210))})
    assert folded_ends(again, 300)
    assert [*again.peak] == [f"at:{slot}" for slot in (100, 101, 102, 103, 109, 200, 201, 202, 203, 209)]
    assert not folded_ends(ends({f"at:{slot}": -slot for slot in range(100, 200)}), 300)
    lowest = ends({f"at:{slot}:low": -slot for slot in range(100, 200)})
    assert folded_ends(lowest, 300)
    assert [*lowest.peak] == [f"at:{slot}:low" for slot in (100, 101, 102, 103, 199)]


def test_rows_of_topics_that_ended_cost_nothing_and_later_rows_have_later_revisions():
    def gone(day):
        name, topic_id = f"topic-{day % 2}", f"day{day}".ljust(22, "x")
        ends = claim("deletion", name, topic_id, "delete-topics", EAST, None, at=day * DAY + 30)
        return [bound(name, topic_id, day * DAY, until=day * DAY + 20), ends]

    judge, rows = judged([(day * DAY + 60, [cluster(at=day * DAY), *gone(day)]) for day in range(1, 40)])
    emitted_names = [
        name for shard in judge.emitted.shards.values() for subject in shard["rows"].values() for name in subject
    ]
    assert len(emitted_names) < 10
    assert len({row.key for row in rows if row.table == "topics"}) == 39
    numbers = {}
    for row in rows:
        numbers.setdefault((row.table, row.key), []).append(row.revision)
    assert all(found == sorted(set(found)) for found in numbers.values())


def old(rng, number):
    """Something of days ago, about none of those the young claims speak of."""
    at = rng.randrange(0, 2 * DAY)
    return rng.choice(
        [
            connection(number, at),
            bound(f"old-{number % 3}", f"old{number % 5}".ljust(22, "x"), at, until=at + 60),
            claim("use", f"old{number % 5}".ljust(22, "x"), "Fetch", "old", "10.0.9.9", EAST, at=at),
            claim("deletion", f"old-{number % 3}", None, "delete-topics", EAST, None, at=at),
            claim("closed_on", "old", "10.0.9.9", EAST, "Produce", 1, at=at, peak={"soonest": -1}),
        ]
    )


@examples(30)
@given(st.sampled_from(sorted(code for code, kind in CASES if kind == "fires")), st.randoms(use_true_random=False))
def test_findings_within_the_horizon_are_those_of_a_ledger_that_forgets_nothing(code, rng: random.Random):
    within_the_horizon(code, rng)


@pytest.mark.parametrize("seed", some(range(4), each=4))
@pytest.mark.parametrize("code", ["CLU003", "CLU004", "CTL012", "LOG004", "LOG005"])
def test_what_was_forgotten_is_of_no_life_and_no_cluster(code, seed):
    within_the_horizon(code, random.Random(seed))


def within_the_horizon(code, rng):
    lab = Lab()
    CASES[code, "fires"](lab)
    young, start = lab.claims(), ns(0) / S
    past = sorted((old(rng, number) for number in range(30)), key=lambda part: part.first)
    for part in past:
        for side in ("first", "last"):
            seen = getattr(part, side)
            setattr(part, side, seen._replace(ts_ns=seen.ts_ns + int((start - 4 * DAY) * S)))
    emitted = {}
    for name, settings in (("ageing", Settings()), ("never", Settings(horizon_s=10**6, ageing_s=10**9))):
        batches = [(start - 4 * DAY + 6 * HOUR * n, past[3 * n - 3 : 3 * n]) for n in range(1, 11)]
        mine = [part.copy() for part in young]
        rng.shuffle(mine)
        _, rows = judged([*batches, (start + 20, mine[::2]), (start + max(lab.until, 500), mine[1::2])], settings)
        found = open_rows(rows)["findings"].values()
        emitted[name] = [row for row in found if row["last_seen"] >= ns(0)]
    assert emitted["ageing"] == emitted["never"]
