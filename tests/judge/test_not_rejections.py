"""The table of errors that reject nothing: every name in it exists, and every line has a reason."""

from pathlib import Path

import pytest

from tests.judge.lab import B1, Lab
from wirecheck.decode import schemas
from wirecheck.decode.api_names import key_of, keys, name_of, names
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


OF_EACH = {
    "MEMBER_ID_REQUIRED": "JoinGroup",
    "REBALANCE_IN_PROGRESS": "OffsetCommit",
    "UNKNOWN_MEMBER_ID": "OffsetCommit",
    "ILLEGAL_GENERATION": "OffsetCommit",
    "FENCED_MEMBER_EPOCH": "ConsumerGroupHeartbeat",
    "STALE_MEMBER_EPOCH": "OffsetCommit",
    "UNRELEASED_INSTANCE_ID": "ConsumerGroupHeartbeat",
    "COORDINATOR_LOAD_IN_PROGRESS": "JoinGroup",
    "COORDINATOR_NOT_AVAILABLE": "FindCoordinator",
    "NOT_COORDINATOR": "OffsetCommit",
    "CONCURRENT_TRANSACTIONS": "InitProducerId",
    "FETCH_SESSION_ID_NOT_FOUND": "Fetch",
    "INVALID_FETCH_SESSION_EPOCH": "Fetch",
    "FETCH_SESSION_TOPIC_ID_ERROR": "Fetch",
    "SHARE_SESSION_NOT_FOUND": "ShareFetch",
    "INVALID_SHARE_SESSION_EPOCH": "ShareFetch",
    "INVALID_RECORD_STATE": "ShareFetch",
    "ELECTION_NOT_NEEDED": "ElectLeaders",
    "TOPIC_ALREADY_EXISTS": "CreateTopics",
    "NO_REASSIGNMENT_IN_PROGRESS": "AlterPartitionReassignments",
    "RESOURCE_NOT_FOUND": "DescribeUserScramCredentials",
    "TRANSACTIONAL_ID_NOT_FOUND": "DescribeTransactions",
    "SECURITY_DISABLED": "DescribeAcls",
    "DELEGATION_TOKEN_AUTH_DISABLED": "DescribeDelegationToken",
}
"""An API that is answered so, where the table has all."""
SONGS, ORDERS = {"name": "songs"}, {"topic": "songs"}
ANSWERS = {
    "OffsetCommit": (8, lambda e: {"topics": [{**SONGS, "partitions": [{"partitionIndex": 0, "errorCode": e}]}]}),
    "OffsetFetch": (7, lambda e: {"errorCode": e}),
    "OffsetDelete": (0, lambda e: {"errorCode": e}),
    "FindCoordinator": (3, lambda e: {"errorCode": e, "nodeId": -1, "host": "", "port": -1}),
    "ShareFetch": (1, lambda e: {"errorCode": e}),
    "ShareAcknowledge": (1, lambda e: {"errorCode": e}),
    "ElectLeaders": (2, lambda e: {"replicaElectionResults": [{**ORDERS, "partitionResult": [{"errorCode": e}]}]}),
    "CreateTopics": (5, lambda e: {"topics": [{**SONGS, "errorCode": e, "configs": []}]}),
    "CreatePartitions": (3, lambda e: {"results": [{**SONGS, "errorCode": e}]}),
    "DeleteTopics": (5, lambda e: {"responses": [{**SONGS, "errorCode": e}]}),
    "Metadata": (9, lambda e: {"topics": [{**SONGS, "errorCode": e}]}),
    "DescribeConfigs": (4, lambda e: {"results": [{"errorCode": e, "resourceType": 2, "resourceName": "songs"}]}),
    "DescribeTopicPartitions": (0, lambda e: {"topics": [{**SONGS, "errorCode": e}], "nextCursor": None}),
    "AlterPartitionReassignments": (
        0, lambda e: {"responses": [{**SONGS, "partitions": [{"partitionIndex": 0, "errorCode": e}]}]},
    ),
    "DescribeUserScramCredentials": (0, lambda e: {"results": [{"user": "bob", "errorCode": e}]}),
    "DescribeTransactions": (0, lambda e: {"transactionStates": [{"transactionalId": "t", "errorCode": e}]}),
    "DescribeGroups": (5, lambda e: {"groups": [{"groupId": "g", "errorCode": e}]}),
    "ConsumerGroupDescribe": (0, lambda e: {"groups": [{"groupId": "g", "errorCode": e}]}),
    "ShareGroupDescribe": (1, lambda e: {"groups": [{"groupId": "g", "errorCode": e}]}),
    "StreamsGroupDescribe": (0, lambda e: {"groups": [{"groupId": "g", "errorCode": e}]}),
    "DeleteGroups": (2, lambda e: {"results": [{"groupId": "g", "errorCode": e}]}),
    "DescribeShareGroupOffsets": (0, lambda e: {"groups": [{"groupId": "g", "errorCode": e}]}),
    "ListOffsets": (7, lambda e: {"topics": [{**SONGS, "partitions": [{"partitionIndex": 0, "errorCode": e}]}]}),
    "OffsetForLeaderEpoch": (4, lambda e: {"topics": [{**ORDERS, "partitions": [{"errorCode": e}]}]}),
    "Fetch": (12, lambda e: {"errorCode": e}),
}  # fmt: skip
"""By API a version, and its response with an error; others have the error on top."""
ROWS = sorted(not_rejections())
SINCE, EVERY_S, UNTIL = 5, 3, 305
UNRELATED = "EndTxn"
"""By which no client works on."""
CODE_OF = {error.name: code for code, error in schemas.errors().items()}


def state_of(api, error, by):
    """Of the API of a client that is answered so each 3 s for 5 minutes; `by`: what it is granted between."""
    lab = Lab()
    lab.metadata(0, brokers={B1: 1})
    talk = lab.talk(B1, "app", "10.0.0.7")
    code = CODE_OF["GROUP_AUTHORIZATION_FAILED" if error == EVERY else error]
    for at in range(SINCE, UNTIL, EVERY_S):
        asks(talk, at, api, code)
        if by is not None:
            asks(talk, at + 1, by, 0)
    lab.until = UNTIL
    return next(row["state"] for row in lab.judge()["activities"].values() if row["api"] == api)


def asks(talk, at, api, code):
    version, answer = ANSWERS.get(api, (int(known()[key_of(api)][1]), lambda error: {"errorCode": error}))
    talk.ask(at, api, version, {}, answer(code))


@pytest.mark.parametrize(("place", "error"), ROWS, ids=lambda part: part)
def test_each_line_counts_where_its_client_does_not_work_on_and_not_where_it_does(place, error):
    rule, api = not_rejections()[place, error], OF_EACH[error] if place == EVERY else place
    by = next(iter(sorted(rule.works_on_by - {EVERY})), api)
    assert state_of(api, error, by) == "working"
    ends_nowhere = EVERY not in rule.works_on_by
    assert (state_of(api, error, None) == "stalled") is ends_nowhere
    assert (state_of(api, error, UNRELATED) == "stalled") is ends_nowhere


def test_checkpoints_of_a_group_with_members_are_tried_again():
    """MirrorCheckpointTask sets offsets of a group at each interval, and describes it; a consumer does not."""
    assert state_of("OffsetCommit", "UNKNOWN_MEMBER_ID", "DescribeGroups") == "working"
    assert state_of("OffsetCommit", "UNKNOWN_MEMBER_ID", "Fetch") == "stalled"
