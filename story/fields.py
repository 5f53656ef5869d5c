"""What the fields of findings name, by their names: which of them two findings that state the same may differ in.

A field that is not here is a check's own. It makes two findings different statements, unless the page of its check
declares that it varies. Rule: a name means the same in every check.
"""

from collections.abc import Container
from functools import cache

from wirecheck.judge.checks.listed_checks import check_of
from wirecheck.story.verdict import Finding


def fields(names: str) -> frozenset[str]:
    return frozenset(names.split())


ERRORS = fields("actual check dialect error errors outcome reason rule tolerance why")
"""What went wrong: by these, groups beyond `entries.MOST_SEPARATE` are compared."""
SERVERS = fields("server servers")
"""One fault of a client may be seen at several."""
SPEAKS = fields(
    "api apis asked_by_client broker by client controller key leader newer newest node range sender software version"
    " versions voter where"
)
"""Who sent which request: compared where findings differ in their topics only."""
ABOUT = fields("endpoint group host")
"""What a finding is about besides its columns."""
VARIES = fields(
    "brokers bytes clients connections count epoch from last offset offsets partition partitions records seconds since"
    " time times to topic topic_id topics until when"
)
"""Amounts, places in a log, and times; topics and their IDs."""


@cache
def statement(code: str) -> frozenset[str]:
    """Fields that make two findings of a check different statements, whichever topic and client they are about."""
    check = check_of(code)
    return (check.fields | ERRORS | SERVERS | ABOUT) - VARIES - SPEAKS - check.varies


def stated(one: Finding, names: Container[str]) -> tuple[tuple[str, str], ...]:
    """The values of these fields, without the topic's own name and IDs. Times always vary."""
    found = [(name, value) for name, value in one.words.items() if name in names and name not in one.times]
    for own in sorted(filter(None, (*one.topic_ids, one.topic)), key=len, reverse=True):
        found = [(name, value.replace(own, "*")) for name, value in found]
    return tuple(sorted(found))
