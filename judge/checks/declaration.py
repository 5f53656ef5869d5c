"""What the page of a check declares of it, as data: all that is known of one check, and of no other.

A page begins with a block of lines (pages/*.md): `key: value`, or `key (words): value`; a line that is indented goes
with the one before. Nothing here judges, so what only prints starts without the checks.

Rule: what the first screen, cards, marks, reports and relations know of a single check is a line of its block, of the
type that is named here. A line that has no type is a mistake in the page, and says where.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wirecheck.judge.checks.page import Page

LINE = re.compile(r"([A-Za-z ]+?)(?: \(([^)]*)\))?: (.*)", re.ASCII)
FIELD = re.compile(r"\{(\w+)", re.ASCII)
OPTIONAL = frozenset({"by", "fewer", "kept", "then"})
"""Words that a sentence of a card does without."""
PARTS = ("cause", "fix", "by", "unhurt", "lacks", "asks", "forbids")
"""What a page says for cards: the cause; what to do; that its client did it; what an entry without hurt clients says;
what its partitions lack; what its fix asks for, and what it forbids.
"""
ANY_CLIENT = "all its clients"
AGREEMENT, WORK, IN_DOUBT = QUESTIONS = ("agreement", "work", "work in doubt")
"""Which of the verdict's two questions a check is about. In doubt: its clients may get nothing done, unless they are
hurt anyway.
"""


class Sentence(NamedTuple):
    """A part of a card. The first one whose words are all known is used."""

    needs: frozenset[str]
    """Words that it needs."""
    text: str


class Explains(NamedTuple):
    """When harm belongs to findings of the check."""

    rank: int
    sure: bool
    """Else the finding may be the reason, and is named as that only."""
    relations: tuple[str, ...]
    """All of them must hold (`story/harm.py`)."""
    why: str


class Hurts(NamedTuple):
    """What its clients do not get done, which the finding itself proves: mostly without an error of each request."""

    outcome: str
    """The error, or what is in its place."""
    api: str = ""
    """Empty where the finding names it."""
    always: bool = False
    """All clients of each finding; else where the finding knows the client's host (`hurt_host`)."""
    recovered: bool = False
    """Whether the client works again: then that is the proof."""


class AsACause(NamedTuple):
    """What a finding is called where others follow from it."""

    ends: str
    """Whether what follows ends with it: yes, no, or the word that such a finding has."""
    template: str


class Course(NamedTuple):
    """What the report draws of what its findings are about."""

    kind: str
    noun: str
    """The word of a finding that names one of them."""
    heading: str


class ListedCheck(NamedTuple):
    """One check."""

    code: str
    name: str
    kind: str
    status: str
    """preview or stable."""
    question: str
    """agreement, work, or work in doubt."""
    spaces: tuple[str, ...]
    """The spaces of the ledger whose subjects it looks at."""
    reads: str
    """What it reads of the ledger, there and elsewhere (`catalogue.declared`)."""
    one_per: str
    """What makes it one finding."""
    summary: str
    """The sentence of a finding."""
    varies: frozenset[str]
    """Fields of its sentence, besides those that vary by their names, in which findings that state the same differ."""
    sentences: Mapping[str, Sequence[Sentence]]
    """By part of a card (PARTS)."""
    explains: Sequence[Explains] | None
    """None where its page does not declare it (`story/harm.py`), and none where that says `nothing`."""
    hurts: Hurts | None
    as_a_cause: AsACause | None
    line: str
    """The label of its line on the first screen where no card shows it; empty where it has none."""
    no_tick_from_s: float | None
    """An event that leaves no tick if it lasts so long, though it contradicts nothing and hurts no known client."""
    shows_no_error: bool
    """Whether it finds what no error code shows."""
    ended_by_a_restart: bool
    """Whether its findings end when their clients are restarted."""
    gives_way_to: frozenset[str]
    """Checks of the same subject that explain what it finds: beside their findings about the same IDs its own are
    left out.
    """
    about_ids: bool
    """Whether it contradicts rows of topic IDs in the table of agreement."""
    version_mark: str
    """How the matrix of versions marks what its sides show; empty where it does not."""
    course: Course | None

    @property
    def fields(self) -> frozenset[str]:
        """Of its sentence."""
        return frozenset(FIELD.findall(self.summary))


class Block:
    """The lines of one page, each read once."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        self.lines: dict[str, list[tuple[str, str]]] = {}
        for line in re.sub(r"\n +", " ", text).splitlines():
            if (found := LINE.fullmatch(line)) is None:
                message = f"{code}: {line}: not `key: value`"
                raise ValueError(message)
            self.lines.setdefault(found[1], []).append((found[2] or "", found[3]))

    def each(self, key: str) -> list[tuple[str, str]]:
        """The words in parentheses and the value of each line of a key."""
        return self.lines.pop(key, [])

    def one(self, key: str) -> tuple[str, str] | None:
        found = self.each(key)
        if len(found) > 1:
            message = f"{self.code}: {key}: there is one"
            raise ValueError(message)
        return found[0] if found else None

    def text(self, key: str, default: str | None = None) -> str:
        found = self.one(key)
        if found is None and default is None:
            message = f"{self.code}: no {key}"
            raise ValueError(message)
        return found[1] if found is not None else default or ""

    def flag(self, key: str) -> bool:
        return self.text(key, "no") == "yes"

    def end(self) -> None:
        if self.lines:
            message = f"{self.code}: no check declares {', '.join(self.lines)}"
            raise ValueError(message)


def declared(page: Page) -> ListedCheck:
    """The check of a page, by the lines of its block."""
    block = Block(page.code, page.declared)
    check = ListedCheck(
        page.code,
        page.name,
        kind=block.text("kind"),
        status=block.text("status"),
        question=block.text("question"),
        spaces=tuple(filter(None, block.text("looks at", "").split(", "))),
        reads=block.text("reads", ""),
        one_per=block.text("one per"),
        summary=block.text("says"),
        varies=frozenset(block.text("varies", "").split()),
        sentences={part: sentences for part in PARTS if (sentences := tuple(sentences_of(block.each(part))))},
        explains=all_explained(block.each("explains")),
        hurts=hurts(block.one("hurts")),
        as_a_cause=as_a_cause(block.one("as a cause")),
        line=block.text("line", ""),
        no_tick_from_s=seconds(block.text("no tick", "")),
        shows_no_error=block.flag("shows no error"),
        ended_by_a_restart=block.flag("ended by a restart"),
        gives_way_to=frozenset(filter(None, block.text("gives way to", "").split(", "))),
        about_ids=block.flag("about IDs"),
        version_mark=block.text("marks versions", ""),
        course=course(block.text("course", "")),
    )
    block.end()
    return check


def sentences_of(lines: Sequence[tuple[str, str]]) -> Iterator[Sentence]:
    for needs, text in lines:
        fields = {*FIELD.findall(text)} - OPTIONAL
        yield Sentence(frozenset({*fields, *needs.split()}), text)


def all_explained(lines: Sequence[tuple[str, str]]) -> tuple[Explains, ...] | None:
    """`explains: nothing` where the findings have errors that something else is the reason of."""
    if [value for _, value in lines] == ["nothing"]:
        return ()
    return tuple(explains(words, value) for words, value in lines) or None


def explains(words: str, value: str) -> Explains:
    """`explains (surely, 1): client, topic; The client's own writes time out.`"""
    certainty, rank = words.split(", ")
    relations, _, why = value.partition("; ")
    return Explains(int(rank), certainty == "surely", tuple(relations.split(", ")), why)


def hurts(line: tuple[str, str] | None) -> Hurts | None:
    """`hurts (Fetch): nothing fetched`, `hurts (Produce, recovered): nothing written`."""
    if line is None:
        return None
    words = set(filter(None, line[0].split(", ")))
    api = "".join(words - {ANY_CLIENT, "recovered"})
    return Hurts(line[1], api, ANY_CLIENT in words, "recovered" in words)


def as_a_cause(line: tuple[str, str] | None) -> AsACause | None:
    if line is None:
        return None
    return AsACause("yes" if line[0] == "ends it" else line[0].removeprefix("ends it if ") or "no", line[1])


def seconds(text: str) -> float | None:
    """Of `from 40 s`."""
    return float(text.split()[1]) if text else None


def course(text: str) -> Course | None:
    return Course(*text.split(", ")) if text else None
