"""What the page shows of totals and rows, and that Prometheus' own tool finds nothing wrong with it."""

import shutil
import subprocess

import numpy as np
import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from wirecheck.streaming.run import open_cards
from wirecheck.streaming.run.metric_catalogue import SECONDS, Histogram
from wirecheck.streaming.run.metrics_page import Page, Query
from wirecheck.streaming.run.request_rows import request_rows
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.request_counts import (
    APIS,
    ERRORS,
    MOST_BROKERS,
    REQUESTS,
    ROUNDS,
    SERVER_ERRORS,
    SERVERS,
    Counts,
    add,
)
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.totals import Totals
from wirecheck.streaming.store.result_tables import from_ipc, to_ipc

S = 1_000_000_000


@pytest.fixture(scope="module")
def batches(frames_files):
    """The batches of a small run, one file each."""
    loop, batches = Loop(Settings()), []
    for file in frames_files:
        before = len(loop.emitted)
        loop.batch([file])
        batches.append({row.route: from_ipc(row.cell) for row in loop.emitted[before:]})
    return batches


@pytest.fixture
def page(batches):
    page = Page()
    for number, batch in enumerate(batches):
        page.take(batch, now_ns=number * S)
    page.update(Query({"follow": 10, "judge": 20}, 3, 4000), batch_s=0.7)
    return page


def text(page):
    registry = CollectorRegistry()
    registry.register(page)
    return generate_latest(registry).decode()


def values(page):
    lines = (line.rpartition(" ") for line in text(page).splitlines() if not line.startswith("#"))
    return {name.removeprefix("wirecheck_"): float(value) for name, _, value in lines}


def test_rows_become_samples(page):
    found = values(page)
    assert found['frames_total{cluster="L"}'] == 12775
    assert found['topics{cluster="L",state="replaced"}'] == found['topics_recreated_total{cluster="L"}'] == 2
    assert found['findings{cluster="L",code="TID001",kind="information",role="alone"}'] == 2
    assert found['exchanges_total{api="ApiVersions",cluster="L",version="3"}'] > 0
    assert found['state_bytes{step="judge"}'] == 20
    assert found["backlog_files"] == 3
    assert found['batch_duration_seconds_bucket{le="1.0"}'] == 1


def test_requests_become_histograms_of_apis_and_brokers_and_errors(page, batches):
    found = values(page)
    fetches = found['request_duration_seconds_count{api="Fetch",cluster="L"}']
    assert found['request_duration_seconds_bucket{api="Fetch",cluster="L",le="+Inf"}'] == fetches
    brokers = {name: count for name, count in found.items() if name.startswith("broker_request_duration_seconds_count")}
    assert set(brokers) == {
        f'broker_request_duration_seconds_count{{broker="{broker}",cluster="L"}}' for broker in (1, 2, 3)
    }
    at_once = sum(n for name, n in found.items() if name.startswith("request_duration_seconds_count")) - fetches
    assert 0.5 * at_once < sum(brokers.values()) <= at_once
    assert sum(n for name, n in found.items() if name.startswith('request_errors_total{api="Metadata"')) > 0
    totals = [row for batch in batches if "totals" in batch for row in batch["totals"].to_pylist()]
    apis = {row["name"]: row for row in request_rows({row["id"]: row for row in totals}.values())["apis"]}
    assert apis["Fetch"]["requests"] == fetches
    assert apis["Fetch"]["p99"].startswith(("at most", "over"))


def test_two_hundred_brokers_have_two_thousand_series_at_most():
    """Whatever they are sent, and however many more there are."""
    counts, totals, us = Counts(), Totals(), range(0, 3_000_000, 100)
    for number in range(MOST_BROKERS + 100):
        server = f"10.0.{number // 250}.{number % 250}:9092"
        add(counts, SERVERS, [server], np.zeros(len(us), np.int64), np.array(us))
        counts[SERVER_ERRORS, server] += 1
    for api in APIS:
        add(counts, REQUESTS, [api], np.zeros(len(us), np.int64), np.array(us))
    add(counts, ROUNDS, [""], np.zeros(len(us), np.int64), np.array(us))
    counts.update({(ERRORS, f"{api}:{number}"): 1 for api in APIS for number in range(50)})
    servers = {detail: place for place, (measure, detail) in enumerate(counts) if measure == SERVER_ERRORS}
    totals.requests(counts, servers.get)
    totals.add("retransmitted_segments", "", 1)
    page = Page()
    page.take({"totals": from_ipc(to_ipc("totals", ({"label": "L", **row} for row in totals.rows())))})
    families = ("request_", "broker_", "network_", "retransmitted_")
    found = [name for name in values(page) if name.startswith(families)]
    assert 1_800 < len(found) <= 2_000
    assert values(page)['broker_errors_total{broker="other",cluster="L"}'] == 100


def test_a_batch_told_again_and_a_page_read_back_count_nothing_twice(page, batches):
    expected = {name: value for name, value in values(page).items() if "seconds" not in name}
    page.take(batches[-1], now_ns=9 * S)
    again = Page()
    for batch in batches:
        again.take(batch)
    again.update(Query({"follow": 10, "judge": 20}, 3, 4000))
    for other in (page, again):
        assert {name: value for name, value in values(other).items() if "seconds" not in name} == expected


def test_what_is_withdrawn_goes_to_nought_and_stays_on_the_page(page, batches):
    findings = pa.concat_tables([batch["findings"] for batch in batches if "findings" in batch])
    state = findings.column_names.index("state")
    page.take({"findings": findings.set_column(state, "state", pa.array(["withdrawn"] * len(findings)))}, now_ns=S)
    assert values(page)['findings{cluster="L",code="TID001",kind="information",role="alone"}'] == 0


def test_a_counter_does_not_go_back_where_a_topic_is_withdrawn(page, batches):
    """Prometheus would take it for a restart, and all that is left for news: an alert that a topic was recreated."""
    values(page)
    topics = pa.concat_tables([batch["topics"] for batch in batches if "topics" in batch])
    at = topics.column_names.index("withdrawn")
    page.take({"topics": topics.set_column(at, "withdrawn", pa.array([True] * len(topics)))}, now_ns=S)
    found = values(page)
    assert found['topics{cluster="L",state="replaced"}'] == 0
    assert found['topics_recreated_total{cluster="L"}'] == 2


def finding(name, code, kind, **columns):
    """A row of the table, at noon."""
    common = {"label": "L", "cluster": "C", "state": "open", "revision": 1, "first_seen": 9 * S, "last_seen": 9 * S}
    lists = {"topic_ids": [], "client_ids": [], "brokers": [], "sides": [], "words": []}
    return {
        "id": name,
        "code": code,
        "kind": kind,
        "name": code,
        "summary": "",
        "count": 1,
        **common,
        **lists,
        **columns,
    }


def test_what_findings_have_to_do_with_each_other_is_a_label_and_follows_what_stands(monkeypatch):
    monkeypatch.setattr(open_cards, "PACE", 0)
    old, new = "1kItcVyISSW2qinBWMWing", "3dQYQ6GHSY6paRw3TwiVqA"
    behind = [finding(f"b{n}", "TID007", "violation", brokers=[4], topic=f"t{n}") for n in range(3)]
    asleep = finding("a", "LOG003", "violation", brokers=[4])
    recreated = finding("r", "TID001", "information", topic="t", topic_ids=[old, new])
    stuck = finding("s", "FET001", "violation", topic="t", topic_ids=[old])
    page = Page()

    def take(*rows):
        page.take({"findings": from_ipc(to_ipc("findings", list(rows)))}, now_ns=S)
        return {tuple(name.split('"')[3::2]): int(value) for name, value in values(page).items() if "findings{" in name}

    assert take(*behind) == {("TID007", "violation", "alone"): 3}
    found = take(asleep, recreated, stuck)
    assert {labels: value for labels, value in found.items() if value} == {
        ("TID007", "violation", "consequence"): 3,
        ("LOG003", "violation", "cause"): 1,
        ("TID001", "information", "cause"): 1,
        ("FET001", "violation", "after_event"): 1,
    }
    found = take({**asleep, "revision": 2, "state": "withdrawn"})
    assert found["TID007", "violation", "alone"] == 3
    assert found["TID007", "violation", "consequence"] == found["LOG003", "violation", "cause"] == 0


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian: prometheus) is not installed")
def test_promtool_finds_nothing_wrong(page):
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text(page), capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_ticks_are_counted_by_age_without_walking_them():
    histogram, one_by_one = Histogram(), Histogram()
    now_ns = 1000 * S
    histogram.observe_ticks(0, 995 * S, now_ns)
    for tick in range(1, 9951):
        one_by_one.observe((now_ns - tick * S // 10) / S)
    assert histogram.counts == one_by_one.counts
    assert histogram.seconds == pytest.approx(one_by_one.seconds)
    histogram.observe_ticks(995 * S, 995 * S, now_ns)
    assert histogram.buckets()[-1] == ("+Inf", 9950.0)
    assert len(histogram.counts) == len(SECONDS) + 1


def test_rows_others_count_by_table_and_as_no_topic_client_or_finding():
    page, times = Page(), {"first_seen": S, "last_seen": S}
    for revision, count in ((1, 5), (2, 9)):
        more = {"revision": revision, "label": "L", "cluster": "C", **times}
        check = {**more, "kind": "anomaly", "others": count}
        findings = [{**check, "id": f"others|{code}", "code": code} for code in ("VER001", "TID005")]
        batch = {
            "topics": [{**more, "id": "others|topics", "state": "others", "others": count}],
            "clients": [{**more, "id": "others|clients", "apis": [], "others": count}],
            "findings": findings,
            "totals": [
                {
                    "id": "evicted",
                    "revision": revision,
                    "label": "L",
                    "measure": "evicted",
                    "detail": "client",
                    "count": count,
                }
            ],
        }
        page.take({table: from_ipc(to_ipc(table, rows)) for table, rows in batch.items()})
    found = values(page)
    assert found['others{cluster="L",table="topics"}'] == found['others{cluster="L",table="clients"}'] == 9
    assert found['others{cluster="L",table="findings"}'] == 18
    assert found['evicted_total{cluster="L",space="client"}'] == 9
    assert not any(name.startswith(("topics{", "clients{", "findings{")) for name in found)
    page.forget()
    assert not any(name.startswith("others{") for name in values(page))


def test_open_findings_are_named_with_topic_and_broker_until_they_are_withdrawn(page):
    named = [name for name in values(page) if name.startswith("finding_info{")]
    assert len(named) == sum(len(known) for known in [page.open["findings"]])
    assert all('code="TID001"' in name and 'topic="' in name for name in named if "TID001" in name)
    seen = {name: value for name, value in values(page).items() if name.startswith("finding_first_seen")}
    first_seen_s = [row["first_seen"] / 1e9 for row in page.cards.rows["findings"].values()]
    assert sorted(seen.values()) == sorted(first_seen_s)
    page.forget()
    assert [name for name in values(page) if name.startswith("finding_info{")] == []


def test_findings_have_the_headline_of_their_card_and_each_change_of_one_is_a_line(page, batches, monkeypatch):
    monkeypatch.setattr(open_cards, "PACE", 0)
    opened = page.news()
    headlines = {line.fields["headline"] for line in opened}
    assert {line.fields["event"] for line in opened} == {"finding opened"}
    assert len(opened) == len({line.fields["finding"] for line in opened}) > 0
    samples = [sample for family in page.collect() for sample in family.samples]
    shown = {sample.labels["sentence"] for sample in samples if sample.name == "wirecheck_finding_info"}
    assert headlines <= shown
    assert "" not in headlines
    assert page.news() == []
    findings = pa.concat_tables([batch["findings"] for batch in batches if "findings" in batch])
    state = findings.column_names.index("state")
    page.take({"findings": findings.set_column(state, "state", pa.array(["withdrawn"] * len(findings)))}, now_ns=S)
    assert {line.partition(":")[0] for line in page.news()} == {"withdrawn"}


def test_cards_that_cannot_be_made_stay_as_they_were_and_say_so_once(page, batches, monkeypatch):
    monkeypatch.setattr(open_cards, "PACE", 0)
    page.news()
    before = dict(page.cards.findings)
    (label,) = {name.partition("|")[0] for name in before}

    def raising(*_choices, **_words):
        raise KeyError("words of the wire")

    monkeypatch.setattr(open_cards.Result, "verdict", raising)
    for _ in range(2):
        page.take(
            {"findings": next(batch["findings"] for batch in batches if len(batch.get("findings", ())))}, now_ns=S
        )
        found = values(page)
    assert page.cards.findings == before != {}
    assert found[f'check_failures_total{{check="cards",cluster="{label}"}}'] == 2
    assert any(name.startswith("finding_info{") for name in found)
    (line,) = page.news()
    assert line.startswith(f"the findings of [{label}] have no new sentences: KeyError in test_metrics_page.py:")
    assert "words of the wire" not in line
    assert page.news() == []
    monkeypatch.undo()
    monkeypatch.setattr(open_cards, "PACE", 0)
    page.forget()
    page.cards.refresh()
    assert page.cards.findings == {}


def test_a_scrape_is_answered_while_cards_are_made(page, monkeypatch):
    make, scraped = open_cards.OpenCards.make, []

    def scraping(cards, label, rows):
        scraped.append(values(page))
        make(cards, label, rows)

    monkeypatch.setattr(open_cards.OpenCards, "make", scraping)
    found = values(page)
    assert scraped[0]['frames_total{cluster="L"}'] == found['frames_total{cluster="L"}']
    assert page.cards.findings != {}


def test_cards_of_one_label_fail_alone(page, batches, monkeypatch):
    monkeypatch.setattr(open_cards, "PACE", 0)
    findings = pa.concat_tables([batch["findings"] for batch in batches if "findings" in batch])
    place = findings.column_names.index("label")
    page.take({"findings": findings.set_column(place, "label", pa.array(["other"] * len(findings)))}, now_ns=S)
    make = open_cards.OpenCards.make
    monkeypatch.setattr(
        open_cards.OpenCards, "make", lambda cards, label, rows: make(cards, label, rows) if label == "other" else 1 / 0
    )
    values(page)
    assert {name.partition("|")[0] for name in page.cards.findings} == {"other"}
    assert len(page.cards.failures) == 1


def test_room_is_that_of_the_disks_and_of_no_other_place(tmp_path):
    page = Page()
    page.places = {"out": tmp_path, "frames": tmp_path / "gone"}
    found = {sample.name: sample for family in page.collect() for sample in family.samples if "disk" in sample.name}
    free, size = (found[f"wirecheck_disk_{name}_bytes"] for name in ("free", "size"))
    assert free.labels == size.labels == {"place": "out"}
    assert 0 <= free.value <= size.value
    assert size.value > 0


def test_the_lag_of_a_group_is_over_its_topics_and_goes_with_its_rows():
    row = {"id": "c|g|songs", "revision": 1, "label": "L", "withdrawn": False, "cluster": "c", "group_id": "g"}
    row |= {"topic": "songs", "partitions": 2, "unknown": 0, "records": 7, "waiting_since": 5 * S}
    row |= {"growth_per_second": 0.5, "first_seen": S, "last_seen": 9 * S}
    other = {**row, "id": "c|g|plays", "topic": "plays", "records": 3, "waiting_since": None}
    page = Page()
    page.take({"lags": from_ipc(to_ipc("lags", [row, other]))}, now_ns=S)
    found = values(page)
    assert found['group_lag_records{cluster="L",group="g"}'] == 10
    assert found['group_waiting_since_timestamp_seconds{cluster="L",group="g"}'] == 5
    page.take({"lags": from_ipc(to_ipc("lags", [{**row, "revision": 2, "withdrawn": True}]))}, now_ns=S)
    assert values(page)['group_lag_records{cluster="L",group="g"}'] == 3
    page.forget()
    assert not [name for name in values(page) if name.startswith("group_")]
