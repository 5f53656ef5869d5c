"""The documentation as a site: a page for each check, an index by Kafka's error names, links that lead somewhere."""

import re
from pathlib import PurePosixPath

import pytest

from tools import site, site_pages
from wirecheck.judge.checks.listed_checks import LISTED, STATUSES

PAGES = site_pages.pages()
FILES = set(site_pages.files())


def resolved(page, target):
    parts = []
    for part in (PurePosixPath(page).parent / target).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    return "/".join(parts)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_a_page_or_a_file_of_the_site(page):
    targets = [resolved(page, target) for target in site_pages.LINK.findall(PAGES[page])]
    assert [target for target in targets if target not in PAGES and target not in FILES] == []


def test_there_is_a_page_for_each_code_and_none_else():
    own = {path for path in PAGES if re.fullmatch(r"checks/[A-Z]{3}\d{3}\.md", path)}
    assert own == {f"checks/{code}.md" for code in LISTED}
    index = PAGES["CHECKS.md"]
    assert [code for code in LISTED if f"[{code}](checks/{code}.md) {LISTED[code].name}" not in index] == []


@pytest.mark.parametrize("code", LISTED)
def test_a_check_says_what_it_finds_and_what_its_status_means(code):
    page = PAGES[f"checks/{code}.md"]
    assert page.startswith(f"# {code} {LISTED[code].name}\n")
    assert "**Detects.**" in page
    assert f"*{LISTED[code].status}*: {STATUSES[LISTED[code].status]}" in page
    assert f"](../checks/{code}.md)" not in page


def test_a_check_is_found_by_the_names_of_kafka_errors_it_speaks_of():
    index = PAGES["checks/errors.md"]
    (section,) = re.findall(r"^## INCONSISTENT_TOPIC_ID\n(.*?)^## ", index, re.MULTILINE | re.DOTALL)
    assert "Error 103." in section
    assert "](TID002.md)" in section
    assert "[INCONSISTENT_TOPIC_ID](errors.md#inconsistent_topic_id)" in PAGES["checks/TID002.md"]
    assert [name for name in site_pages.kafka_errors() if not re.search(rf"\b{name}\b", index)] == []


def test_a_check_leads_to_its_incidents_and_its_runbook():
    page = PAGES["checks/TID002.md"]
    assert "](../dashboards/runbooks/WirecheckTopicIdViolation.md)" in page
    assert "](../docs/incidents/kafka-14190.md)" in page


def test_codes_lead_to_their_checks_but_not_in_code_links_or_headings():
    text = "# TID001\nTID002 and `TID003`, [TID004](x.md), ABC001, TID999.\n```\nTID005\n```\n"
    wanted = text.replace("TID002", "[TID002](../checks/TID002.md)")
    assert site_pages.linked(text, "docs/faq.md") == wanted


def test_a_list_begins_behind_an_empty_line_but_not_in_code():
    assert site_pages.spaced("so:\n* a\n  b\n* c\n```\nx\n- y\n```\n") == "so:\n\n* a\n  b\n* c\n```\nx\n- y\n```\n"


def test_every_page_is_in_the_navigation_once():
    assert sorted(site_pages.paths(site_pages.navigation(PAGES))) == sorted(PAGES)


def test_no_address_of_a_project_is_made_up():
    assert {"site_url", "repo_url"} & site.settings([], {}).keys() == set()
    chosen = site.settings([], {"Documentation": "https://docs.example/", "Source": "https://git.example/w"})
    assert (chosen["site_url"], chosen["repo_url"]) == ("https://docs.example/", "https://git.example/w")


def test_what_a_page_would_load_from_elsewhere_is_seen():
    seen = site.FROM_ELSEWHERE.findall
    assert seen('<script src="https://cdn.example/x.js"></script><img alt="" src="//a.example/b.png">')
    assert seen('<script src="assets/x.js"></script><a href="https://kafka.apache.org/">') == []
