"""Findings in reading order: equal ones as one entry, consequences under their cause, and the sentence of each.

Rule: every finding is in one entry, by its ID. The same findings give the same entries and texts, in whatever order
they come.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from wirecheck.client_ids import is_internal
from wirecheck.judge.checks.page import remedy
from wirecheck.story.verdict import Entry
from wirecheck.wording import and_list

Row = Mapping[str, Any]
Key = tuple[Any, ...]
KINDS = ("violation", "anomaly", "information", "visibility")
BLAMED = KINDS[:2]
"""Kinds of findings that need a look, the worse first."""
MOST_SEPARATE = 12
"""More entries of one check than these are brought together even if topics, clients, brokers and hosts all differ."""


def fields(names: str) -> frozenset[str]:
    return frozenset(names.split())


ERRORS = fields("actual check dialect error errors outcome reason rule tolerance why")
"""Fields of summaries by which groups beyond MOST_SEPARATE are compared."""
STATES = ERRORS | fields(
    "after agent answered before bound but cannot created described does endpoint former group had holder host"
    " latter may one other protocol ranges restart sent server servers side stuck went what who whose why"
)
"""Fields that make two findings different statements, whichever topic and client they are about."""
SERVERS = fields("server servers")
"""Fields of these that name a server: one fault of a client may be seen at several."""
SPEAKS = fields(
    "api apis asked_by_client broker by client controller key leader newer newest node range sender software version"
    " versions voter where"
)
"""Fields that name the sender and the request: compared where findings differ in their topics only."""
DIFFERS = fields(
    "about address behind brokers bytes clients committed connections count current cut directories earlier"
    " end ended epoch from gaps high highest how isr last leaders limit longest_ms low minimum more names new offset"
    " offsets old one_brokers open other_brokers partition partitions rate seconds since subjects then time times"
    " to topic topic_id topics until when which"
)
"""Fields in which findings that state the same may differ: times, counts, offsets, topics and their ids."""


def entries(findings: Iterable[Row], every: Iterable[Row] = ()) -> list[Entry]:
    """What should be read first comes first, each with the entries that follow from it.

    A finding whose cause is not listed is an entry of its own and names the cause. `every` has the findings that are
    not listed.
    """
    return Telling(list(findings), every).entries()


class Telling:
    """The findings that are listed, by what they follow from."""

    def __init__(self, findings: list[Row], every: Iterable[Row]) -> None:
        listed = {row["id"] for row in findings}
        self.roots = [row for row in findings if row["cause"] not in listed]
        self.unlisted = {row["id"]: row for row in every if row["id"] not in listed}
        self.under: dict[str, list[Row]] = defaultdict(list)
        for row in findings:
            if row["cause"] in listed:
                self.under[row["cause"]].append(row)
        self.dated = len({row[column][:10] for row in findings for column in ("first_seen", "last_seen")}) > 1

    def entries(self) -> list[Entry]:
        return sorted((self.entry(group, own_next=True) for group in equal(self.roots, self.place)), key=rank)

    def entry(self, group: Sequence[Row], *, own_next: bool) -> Entry:
        first, more = group[0], len(group) - 1
        following = [row for root in group for row in self.under.get(root["id"], ())]
        ends = bool(following) and all_ends_with(first)
        under = (self.entry(rows, own_next=not ends) for rows in equal(following, self.place))
        return Entry(
            sentence=sentence(first, more, len(following), dated=self.dated),
            code=first["code"],
            name=first["name"],
            kind=first["kind"],
            cluster=first["cluster"],
            role="cause" if following else "consequence" if first["cause"] else "alone",
            count=len(group),
            findings=tuple(row["id"] for row in group),
            topics=tuple(sorted({row["topic"] for row in group} - {None})),
            client_ids=tuple(sorted({client for row in group for client in row["client_ids"]})),
            brokers=tuple(sorted({broker for row in group for broker in row["brokers"]})),
            own_next=own_next,
            follows_from=self.follows_from(group),
            consequences=tuple(sorted(under, key=rank)),
        )

    def follows_from(self, group: Sequence[Row]) -> str | None:
        """The causes that are not listed, by the first; the others are like it."""
        causes = dict.fromkeys(row["cause"] for row in group if row["cause"] in self.unlisted)
        if not causes:
            return None
        cause = self.unlisted[next(iter(causes))]
        more = f" ({len(causes) - 1:,} more like it)" if len(causes) > 1 else ""
        return f"{cause['code']} {cause['id']}: {origin(cause, dated=self.dated)}{more}."

    def place(self, row: Row) -> Key:
        """What no equal findings differ in; causes and consequences count by their checks. The brokers, which those
        about one topic and those of a crowd may differ in, are the last of it.
        """
        follows = tuple(sorted({following["code"] for following in self.under.get(row["id"], ())}))
        cause = self.unlisted.get(row["cause"], {}).get("code")
        return row["code"], row["kind"], row["cluster"], bool(row.get("others")), follows, cause, tuple(row["brokers"])


def rank(entry: Entry) -> Key:
    """Worst first, by what is under it too; then causes, then what was seen by its code."""
    worst = min(KINDS.index(one.kind) for one in entry.with_consequences)
    return worst, entry.role != "cause", entry.code, -entry.count, entry.findings[0]


def equal(rows: Iterable[Row], place: Callable[[Row], Key]) -> list[list[Row]]:
    """Rows of one place that state the same, the earliest first in each group."""
    groups = [[row] for row in sorted(rows, key=lambda row: (row["first_seen"], row["id"]))]
    groups = together(groups, lambda row: (place(row), tuple(row["client_ids"]), stated(row, STATES | SPEAKS)))
    groups = together(groups, lambda row: (place(row)[:-1], row["topic"], tuple(row["topic_ids"]), stated(row, STATES)))
    groups = at_several_servers(groups, place)
    counts = Counter(place(group[0])[:-1] for group in groups)
    too_many = [group for group in groups if counts[place(group[0])[:-1]] > MOST_SEPARATE]
    others = [group for group in groups if counts[place(group[0])[:-1]] <= MOST_SEPARATE]
    return others + together(too_many, lambda row: (place(row)[:-1], stated(row, ERRORS)))


def together(groups: Iterable[list[Row]], key: Callable[[Row], Key]) -> list[list[Row]]:
    """Groups whose first rows have one key, as one."""
    found: dict[Key, list[Row]] = defaultdict(list)
    for group in groups:
        found[key(group[0])].extend(group)
    return [sorted(group, key=lambda row: (row["first_seen"], row["id"])) for group in found.values()]


def at_several_servers(groups: Iterable[list[Row]], place: Callable[[Row], Key]) -> list[list[Row]]:
    """Groups about the same clients that differ in the server only, as one: what is to be done is to be done there. Of
    brokers that are clients the servers stay apart.
    """
    found: dict[Key, list[Row]] = {}
    for group in groups:
        clients = tuple(sorted({client for row in group for client in row["client_ids"]}))
        clients = () if any(map(is_internal, clients)) or group[0]["words"].get("requester") else clients
        about = (
            place(group[0])[:-1],
            group[0]["topic"],
            tuple(group[0]["topic_ids"]),
            stated(group[0], STATES - SERVERS),
        )
        found.setdefault((clients, *about) if clients else (group[0]["id"],), []).extend(group)
    return [sorted(group, key=lambda row: (row["first_seen"], row["id"])) for group in found.values()]


def stated(row: Row, fields: frozenset[str]) -> Key:
    """The values of these fields of the summary, without the topic's own name and IDs."""
    found = [(name, value) for name, value in row["words"].items() if name in fields]
    for own in sorted(filter(None, (*row["topic_ids"], row["topic"])), key=len, reverse=True):
        found = [(name, value.replace(own, "*")) for name, value in found]
    return tuple(sorted(found))


def sentence(row: Row, more: int, following: int, *, dated: bool) -> str:
    """A cause and how many findings follow from it; of any other finding its summary. One sentence."""
    text = origin(row, dated=dated) if following else str(row["summary"]).removesuffix(".")
    if more:
        text += f" ({more:,} more like it)"
    if following:
        findings = f"{following:,} finding{'s follow' if following > 1 else ' follows'}"
        text += f"; {findings} from {'them' if more else 'it'}"
    return f"{text}."


def origin(row: Row, *, dated: bool) -> str:
    """What a finding is called as a cause."""
    return cause_sentences()[row["code"]].template.format(**words(row, dated=dated))


ADVERTISES = "ApiVersions"
"""An advertised version is not a request that a client is blamed for, unless there is nothing else."""


def words(row: Row, *, dated: bool) -> dict[str, str]:
    pairs = {(side["api"], side["version"]) for side in row["sides"] if side["api"]}
    requests = {request for request in pairs if request[0] != ADVERTISES} or pairs
    return {
        **row["words"],
        "summary": str(row["summary"]).removesuffix("."),
        "topic": row["topic"] or (row["topic_ids"] or ["(name unknown)"])[0],
        "id": (row["topic_ids"] or [""])[0],
        "brokers": and_list(list(map(str, row["brokers"]))),
        "clients": ", ".join(client or "(no client ID)" for client in row["client_ids"]),
        "requests": ", ".join(f"{api} v{version}" for api, version in sorted(requests)),
        "first": clock(row["first_seen"], dated=dated),
        "began": clock(str(row["words"].get("since") or row["first_seen"]), dated=dated),
        "last": clock(row["last_seen"], dated=dated),
    }


def clock(time: str, *, dated: bool) -> str:
    """To the second; with its day where the findings are of several."""
    return f"{time[:10]} {time[11:19]}" if dated else time[11:19]


def remedies_of(findings: Iterable[Row]) -> dict[str, str]:
    """By finding ID. Where the remedy of its cause ends a finding, that is the remedy: one of its own may do harm."""
    by_id = {finding["id"]: finding for finding in findings}
    found = {}
    for finding in findings:
        cause = by_id.get(finding["cause"])
        ends = cause is not None and all_ends_with(cause)
        found[finding["id"]] = remedy(cause["code"] if cause is not None and ends else finding["code"])
    return found


def all_ends_with(cause: Row) -> bool:
    """Whether what follows from a finding ends with it; else each consequence needs something done of its own."""
    ends = cause_sentences()[cause["code"]].ends
    return ends == "yes" or (ends != "no" and bool(cause["words"].get(ends)))


class CauseSentence(NamedTuple):
    """What a finding is called where others follow from it."""

    ends: str
    """Whether what follows ends with it: yes, no, or the word that such a finding has."""
    template: str


@cache
def cause_sentences() -> Mapping[str, CauseSentence]:
    lines = Path(__file__).with_name("cause_sentences.tsv").read_text("ascii").splitlines()
    return {code: CauseSentence(ends, template) for code, ends, template in (line.split("\t") for line in lines[1:])}
