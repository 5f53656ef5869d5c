"""CLI006 is on every surface, with the client that is hurt; what a finding explains is not."""

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

from tests.judge import cases_unserved as cases
from tests.judge.lab import Lab
from wirecheck import cli
from wirecheck.story.unexplained import before, meant, telling
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.store.result_folder import latest_run, read

CODE = "CLI006"


@pytest.fixture
def denied(tmp_path):
    """A capture of a client that lost an ACL."""
    lab = Lab()
    cases.cli006_fires(lab)
    path = tmp_path / "denied.pcap"
    path.write_bytes(lab.pcap())
    return path


def printed(*arguments, code=0):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(cli.main, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.mark.parametrize(("errors", "api", "said"), [
    (["ASSIGNMENT_DELAYED", "MISSING_SOURCE_TOPICS"], "StreamsGroupHeartbeat", ["MISSING_SOURCE_TOPICS"]),
    (["ASSIGNMENT_DELAYED"], "StreamsGroupHeartbeat", ["ASSIGNMENT_DELAYED"]),
    (["COORDINATOR_LOAD_IN_PROGRESS", "GROUP_AUTHORIZATION_FAILED"], "OffsetCommit", ["GROUP_AUTHORIZATION_FAILED"]),
    (["INVALID_TXN_STATE", "PRODUCER_FENCED"], "EndTxn", ["PRODUCER_FENCED"]),
    (["INVALID_RECORD", "MESSAGE_TOO_LARGE"], "Produce", ["INVALID_RECORD", "MESSAGE_TOO_LARGE"]),
])  # fmt: skip
def test_of_several_errors_those_are_explained_that_say_why(errors, api, said):
    assert telling(errors, api) == said
    words = meant(errors, api, "orders")
    assert words["means"].count(";") == len(said) - 1
    assert words["action"]


def test_writes_with_acks_0_are_not_called_without_success():
    assert before(["CONNECTION_CLOSED"], granted=False) == "and a success would not show (acks=0)"
    assert before(["MESSAGE_TOO_LARGE"], granted=False) == "and never succeeded"
    assert before(["CONNECTION_CLOSED"], granted=True) == "after it had succeeded"


def test_a_refused_client_has_one_finding_on_every_surface(denied, tmp_path):
    out = tmp_path / "out"
    result = json.loads(printed("replay", denied, "--format", "json", "--out", out, code=1))
    (finding,) = result["findings"]
    (entry,) = result["entries"]
    assert (finding["code"], finding["kind"], finding["client_ids"]) == (CODE, "anomaly", ["writer"])
    assert [one["client_id"] for one in entry["card"]["harm"]["clients"]] == ["writer"]
    assert finding["id"] in printed("findings", out)
    assert "writer (10.0.0.7) has no Produce of songs granted" in printed("findings", out, CODE)
    evidence = tmp_path / "evidence.pcapng"
    printed("evidence", CODE, denied, "-o", evidence)
    assert evidence.stat().st_size > 0
    page = Page()
    page.take({"harms": pa.concat_tables(read(out, "harms", latest_run(out)))})
    samples = {
        (one.name, one.labels.get("code"), one.labels.get("id")): one.value
        for family in page.collect()
        for one in family.samples
    }
    assert samples["wirecheck_findings", CODE, None] == 1
    assert samples["wirecheck_finding_affected_clients", None, finding["id"]] == 1


def test_the_finding_ends_with_what_it_is_made_of(denied, tmp_path):
    """A later revision of a harm that no longer hurts takes it back."""
    out = tmp_path / "out"
    printed("replay", denied, "--out", out, code=1)
    (harms,) = read(out, "harms", latest_run(out))
    page = Page()
    page.take({"harms": harms})
    page.cards.refresh()
    (row,) = harms.to_pylist()
    page.cards.due_s = 0
    page.take(
        {"harms": pa.Table.from_pylist([{**row, "revision": row["revision"] + 1, "withdrawn": True}], harms.schema)}
    )
    page.cards.refresh()
    assert dict(page.cards.unexplained) == {}
