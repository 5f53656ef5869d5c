"""A finding that goes on is told once a minute; what somebody would act on is told at once, and the end is as ever."""

import itertools

import pytest

from tests.judge.lab import open_rows
from tests.judge.made import EAST, ID_1, ID_2, S, bound, claim, cluster, outcomes
from wirecheck.judge.revisions.judge import Judge

EVERY_S, LAST_S = 2, 700
RECREATED = [
    cluster(),
    bound("orders", ID_1, 1, until=20),
    claim("deletion", "orders", ID_1, "delete-topics", EAST, None, at=21),
    bound("orders", ID_2, 30, until=40),
]


def use(at, api="Fetch", host="10.0.0.99"):
    return claim("use", ID_1, api, "c", host, EAST, at=at, tally={"asked": 1}, outcomes=outcomes((at, 100)))


def batches():
    """A client that goes on with the old id, and what else there is to say of it."""
    found = [[*RECREATED, use(40)]]
    found += [[bound("orders", ID_2, at), use(at)] for at in range(100, LAST_S, EVERY_S)]
    return found


def judged(batches, *, restarts=False):
    """Every revision of TID005 with the watermark at which it was told, and all rows."""
    judge, store, rows, emitted = Judge("lab"), {}, [], []
    for number, batch in enumerate(batches):
        judge = Judge("lab", store.get) if restarts and number else judge
        judge.absorb(part.copy() for part in batch)
        now_ns = max(part.last.ts_ns for part in batch)
        judge.progress("agent", now_ns, ended=number == len(batches) - 1)
        made = judge.rows()
        emitted += [(now_ns // S, row.body) for row in made if row.body.get("code") == "TID005"]
        rows += made
        store.update(judge.shards())
    return emitted, rows


@pytest.mark.parametrize("restarts", [False, True])
def test_a_finding_of_which_only_the_count_grows_is_told_once_a_minute_and_its_last_revision_is_as_ever(restarts):
    emitted, rows = judged(batches(), restarts=restarts)
    assert len(emitted) >= 4
    minutes = [at for at, _ in emitted[1:-1]]
    assert all(later - before >= 60 for before, later in itertools.pairwise(minutes))
    assert all(later - before <= 60 + EVERY_S for before, later in itertools.pairwise(minutes))
    at_once = judged([[part for batch in batches() for part in batch]])[1]
    assert open_rows(rows)["findings"] == open_rows(at_once)["findings"]


def test_what_somebody_would_act_on_is_told_with_its_batch():
    story = batches()
    middle = 3 * len(story) // 4
    at = 100 + (middle - 1) * EVERY_S
    story[middle].append(use(at, api="ListOffsets"))
    before, after = (dict(judged(one)[0]) for one in (batches(), story))
    assert at not in before
    assert "ListOffsets" in after[at]["summary"]


def test_what_leaves_is_told_before_it_does():
    """The batch that was long ago by the watermark it brings itself."""
    judge = Judge("lab")
    judge.absorb(part.copy() for part in [*RECREATED, use(400)])
    judge.progress("agent", 400 * S, ended=False)
    assert [row for row in judge.rows() if row.body.get("code") == "TID005"]
    judge.absorb([use(430)])
    judge.progress("agent", (430 + 3 * judge.settings.horizon_s) * S, ended=False)
    (last,) = [row.body["last_seen"] for row in judge.rows() if row.body.get("code") == "TID005"]
    assert last == 430 * S
