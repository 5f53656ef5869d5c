"""Measures texts, names and lengths against the house style: `python -m tools.language` prints where there is more
than before, `--all` all there is.

It is taste, and fails nothing; only old names that come back do (tests/test_documents.py). `--write` writes the lists
of what is left to `tests/language/`.

Knows the private words that users should not have to learn (INSTEAD), where users read text, and what a long line or
sentence is. `tests/language/` holds what is left of before: it may only shrink.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
LISTS = ROOT / "tests" / "language"
INSTEAD = {
    r"told|tells?|telling": "reports, lists",
    r"said|saying": "reported, stated",
    r"spoken|heard": "negotiated, received",
    r"strangers?": "unauthenticated host",
    r"innocent|innocence": "known false positive",
    r"boards?": "dashboard",
    r"anew": "again, recreated",
    r"mend(?:s|ed|ing)?": "fix",
    r"rooms?": "package",
    r"sides?": "evidence (of a finding)",
    r"left out|leaves? out|leaving out": "redacted, omitted",
    r"undo(?:es|ne)?": "decrypt (TLS), revert",
    r"for ever|in vain|stands? open|goes on|go on|went on|going on": "always, without success, is open, continues",
    r"somebody|nobody|anybody|whoever|odd one out": "a client, a broker, no host",
    r"the hall": "incident library",
    r"ids?": "ID, IDs",
}
PRIVATE = re.compile("|".join(rf"\b(?:{words})\b" for words in INSTEAD))
KNOWN = re.compile(
    r"side\s+by\s+side|(?:client|server|broker|other|each|both|either|one)[- ]sides?"
    r"|[\w.-]+[._-]ids?\b|\bids?[._=:/-]\w+|\w+:ids?\b|\bids? = "
)
"""Common phrases, and names of Kafka, columns and options."""
OLD_NAME = re.compile(
    r"(?:^|_)(?:told|said|spoken|heard|hear|standing|rooms?|crowd|lessen|strangers?|deeds?|ungranted|beyond|uncounted"
    r"|unhurried|hurried|ripe|homes?|unasks|wanted|outlive|attend|recall|door|house|walls|anew|mend|innocent"
    r"|somebody|nobody)(?:$|_)"
)
FENCED = re.compile(r"^ *```.*?^ *```|^( {4}|\t).*?$", re.DOTALL | re.MULTILINE)
DECLARED = re.compile(r"^```check\n.*?^```", re.DOTALL | re.MULTILINE)
SENTENCES = re.compile(r"^(?:says|cause|fix|unhurt|as a cause)[^:]*: ((?:.*)(?:\n .*)*)", re.MULTILINE)
"""What a page declares that people read: sentences of findings, cards and causes."""
TYPED = re.compile(r"`[^`\n]*`|\]\([^)]*\)|<[^>]*>|\{\{.*?\}\}|\{%.*?%\}|\{[^}\n]*\}|https?://\S+", re.DOTALL)
"""What is typed, printed or an address: not a text's own words."""
PROMQL = re.compile(r"wirecheck_\w+[{\[(]|\bby ?\(|SELECT ")
PAGES = ("*.md", "docs/**/*.md", "deploy/**/*.md", "dashboards/**/*.md", "examples/**/*.md", "[a-z]*/README.md")
PAGES += ("judge/checks/pages/*.md",)
TABLES = ("judge/checks/*.tsv", "judge/claims/*.tsv", "dashboards/client_upgrades.tsv")
PRODUCT = (
    "capture",
    "commands",
    "dashboards",
    "decode",
    "judge",
    "questions",
    "session",
    "story",
    "streaming",
    "wirecheck",
)


def texts() -> Iterator[tuple[Path, str]]:
    """What users read, by file; names, code and placeholders are spaces."""
    for path in pages():
        text = path.read_text("utf-8")
        yield path, TYPED.sub(" ", FENCED.sub(" ", text))
        yield path, TYPED.sub(" ", "\n".join(SENTENCES.findall("".join(DECLARED.findall(text)))))
    for path in (path for pattern in TABLES for path in sorted(ROOT.glob(pattern))):
        sentences = (line.rpartition("\t")[2] for line in path.read_text("utf-8").splitlines())
        yield path, TYPED.sub(" ", "\n".join(sentences))
    for path in sorted(ROOT.glob("dashboards/report/*.j2")):
        yield path, TYPED.sub(" ", path.read_text("utf-8"))
    alerts = ROOT / "dashboards/prometheus/alerts.yml"
    yield alerts, TYPED.sub(" ", "\n".join(re.findall(r"(?:summary|description): (.*)", alerts.read_text())))
    for path in sources():
        yield path, TYPED.sub(" ", "\n".join(read(path)[0]))


def pages() -> list[Path]:
    return sorted({path for pattern in PAGES for path in ROOT.glob(pattern) if "build" not in path.parts})


def sources() -> list[Path]:
    return sorted(path for name in PRODUCT for path in (ROOT / name).rglob("*.py") if not path.is_symlink())


@cache
def read(path: Path) -> tuple[list[str], set[str]]:
    """The texts in a module, and the names that it binds."""
    nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
    notes = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    found, names = [], {path.stem}
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if " " in text.strip() and id(node) not in notes:
                found += [] if PROMQL.search(text) else [text]
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                names.add(name)
    return found, names


def private_words() -> dict[str, list[str]]:
    """By folder, each private word with its file."""
    found: dict[str, list[str]] = {}
    for path, text in texts():
        words = (word[0] for word in PRIVATE.finditer(KNOWN.sub(" ", text)))
        found.setdefault(path.parent.relative_to(ROOT).as_posix(), []).extend(f"{path.name}: {word}" for word in words)
    return found


def old_names() -> list[str]:
    """Names that code binds, and modules, with a private word in them."""
    bound = {name for path in sources() for name in read(path)[1]}
    return sorted(name for name in bound if OLD_NAME.search(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()))


def wide_lines(text: str) -> list[str]:
    """Lines of text beyond 100 columns; tables, headings, output and pictures aside."""
    lines = FENCED.sub("", text).splitlines()
    return [line for line in lines if len(line) > 100 and not re.match(r"\s*(\||!\[|<|#)|.*https://", line)]


def sentence_lengths(text: str) -> list[int]:
    """Words of each sentence: paragraphs, list items and cells."""
    prose = re.sub(r"`[^`\n]*`|\]\([^)]*\)|<[^>]*>", "x", FENCED.sub("\n\n", text))
    blocks = re.split(r"\n\s*\n|\n\s*(?:[*-]|\d+\.) |^#.*$|\||^\s*(?:[*-]|\d+\.) ", prose, flags=re.MULTILINE)
    sentences = (one for block in blocks for one in re.split(r"(?<=[.?!:])\s+(?=[A-Z`\"(\[*]|x\b)", block))
    return [length for one in sentences if (length := len(re.findall(r"[A-Za-z][\w'/-]*", one))) > 2]


def long_text() -> dict[str, int]:
    """By page, how many lines are wider than 100 columns and sentences longer than 30 words."""
    found = {}
    for path in pages():
        text = path.read_text("utf-8")
        count = len(wide_lines(text)) + sum(length > 30 for length in sentence_lengths(text))
        found[path.relative_to(ROOT).as_posix()] = count
    return found


def allowed(name: str) -> dict[str, int]:
    rows = (line.split("\t") for line in (LISTS / name).read_text("ascii").splitlines())
    return {place: int(count) for place, count in rows}


def write() -> None:
    tables: Mapping[str, Callable[[], Mapping[str, int]]] = {
        "private_words.tsv": lambda: Counter({folder: len(words) for folder, words in private_words().items()}),
        "long_text.tsv": long_text,
    }
    for name, counts in tables.items():
        rows = [f"{place}\t{count}\n" for place, count in sorted(counts().items()) if count]
        (LISTS / name).write_text("".join(rows), "ascii")
    (LISTS / "old_names.txt").write_text("".join(f"{name}\n" for name in old_names()), "ascii")


FUNCTION_LINES, HEAD_LINES = 50, 3


def lengths() -> Iterator[str]:
    """Functions that are longer than a screen (their docstring is free), and modules with a short head."""
    for path in sources():
        tree, name = ast.parse(path.read_text("utf-8")), path.relative_to(ROOT).as_posix()
        if path.name != "__init__.py" and len((ast.get_docstring(tree) or "").splitlines()) < HEAD_LINES:
            yield f"{name}: its docstring has fewer than {HEAD_LINES} lines"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                count = (node.end_lineno or node.lineno) - body[0].lineno + 1
                if count > FUNCTION_LINES:
                    yield f"{name}:{node.lineno}: {node.name} has {count} lines"


def more() -> Iterator[str]:
    """Where there is more than the lists allow."""
    may = allowed("private_words.tsv")
    for folder, words in private_words().items():
        if len(words) > may.get(folder, 0):
            found = ", ".join(sorted(set(words)))[:300]
            yield f"{folder}: {len(words)} private words, {may.get(folder, 0)} before: {found}"
    may = allowed("long_text.tsv")
    for page, count in long_text().items():
        if count > may.get(page, 0):
            yield f"{page}: {count} long lines and sentences, {may.get(page, 0)} before"
    yield from lengths()


def all_there_is() -> None:
    for folder, words in sorted(private_words().items()):
        if words:
            print(f"{len(words):5} {folder}: {', '.join(sorted(set(words)))[:150]}")
    for path in pages():
        lengths = sentence_lengths(path.read_text("utf-8"))
        print(f"{median(lengths):5} median, {max(lengths):3} longest: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    elif "--all" in sys.argv:
        all_there_is()
    else:
        print(*(f"style: {line}" for line in more()), sep="\n")
