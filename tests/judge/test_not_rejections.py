"""The table of errors that reject nothing: every name in it exists, and every line has a reason."""

from pathlib import Path

from wirecheck.decode import schemas
from wirecheck.decode.api_names import keys, name_of, names
from wirecheck.decode.show.message_summary import columns
from wirecheck.decode.wire import RESPONSE, known
from wirecheck.judge import not_rejections as module
from wirecheck.judge.activity_states import STEP_OF
from wirecheck.judge.checks.error_meanings import by_api, meaning_of
from wirecheck.judge.claims.response_outcomes import ERROR_CODES, NAMES, STATUS_NAMES, outcome_name
from wirecheck.judge.not_rejections import EVERY, NONE, is_protocols_own, not_rejection, not_rejections

APIS = {*keys(), EVERY}
ERRORS = {error.name for error in schemas.errors().values()} | {EVERY}


def test_every_api_and_error_of_the_table_exists_and_has_a_reason():
    lines = Path(module.__file__).with_name("not_rejections.tsv").read_text("ascii").splitlines()
    assert lines[0].split("\t") == ["api", "error", "works on by", "why"]
    for api, error, by, why in (line.split("\t") for line in lines[1:]):
        assert api in APIS
        assert error in ERRORS
        assert {*by.split(",")} <= APIS | {NONE}
        assert why.endswith((")", "."))
    assert len(not_rejections()) == len(lines) - 1


def test_an_own_line_of_an_api_comes_before_that_of_all():
    assert not_rejection("Heartbeat", "REBALANCE_IN_PROGRESS").works_on_by == {EVERY}
    assert "JoinGroup" in not_rejection("OffsetCommit", "REBALANCE_IN_PROGRESS").works_on_by
    assert not_rejection("Produce", "MESSAGE_TOO_LARGE") is None


def test_an_error_that_ends_by_itself_refuses_where_nothing_succeeds():
    assert is_protocols_own("OffsetCommit", "COORDINATOR_NOT_AVAILABLE", in_part=True)
    assert is_protocols_own("OffsetCommit", "NOT_COORDINATOR", in_part=False), "it may work on at another broker"
    assert not is_protocols_own("OffsetCommit", "COORDINATOR_NOT_AVAILABLE", in_part=False)
    assert is_protocols_own("Fetch", "FENCED_LEADER_EPOCH", in_part=False)
    assert is_protocols_own("DescribeGroups", "GROUP_AUTHORIZATION_FAILED", in_part=False)


def test_an_error_means_something_else_where_its_api_is_named():
    meant = [meaning_of("COORDINATOR_NOT_AVAILABLE", api).means for api in ("OffsetCommit", "FindCoordinator")]
    assert meant[0] != meant[1]
    assert {api for _, api in by_api()} - {NONE} <= APIS


def test_every_outcome_has_a_name():
    assert outcome_name(0) == "granted"
    assert outcome_name(35) == "UNSUPPORTED_VERSION"
    assert outcome_name(999) == "error 999"
    assert [outcome_name((1 << 17) + number) for number in range(7)] == [*STATUS_NAMES, "status 6"]
    assert len({*NAMES.values()}) == len(NAMES)
    assert STEP_OF.keys() <= APIS


BESIDE = {
    ("CreateTopics", "topic_config_error_code"),
    ("ShareFetch", "acknowledge_error_code"),
    ("ConsumerGroupDescribe", "assignment.error"),
    ("ConsumerGroupDescribe", "target_assignment.error"),
}
"""Error codes that reject nothing: a configuration that is not shown, an acknowledgement, a member's own statement."""


def test_every_error_code_of_a_part_counts_for_what_came_of_its_request():
    codes = {
        (name_of(key), column.code)
        for key in names()
        if known()[key][0] >= 0
        for column in columns(key, RESPONSE).errors
        if column.table
    }
    assert {(api, name) for api, name in codes if name not in ERROR_CODES} == BESIDE
