"""The pages of the documentation as a site: this repository's own, and the catalogue of checks cut into a page each.

Knows: the pages of each section (BEGIN), that pages they link to belong to the site, and which pages mention a check
or one of Kafka's errors. Does not know how pages become HTML (`tools/site.py`), and has no text about checks.
Rule: every page keeps its place in the repository, so that its links work in both; a check's code in a page is a link
to the check's page.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from wirecheck.judge.checks import listed_checks
from wirecheck.judge.checks.page import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
BEGIN = {
    "Get started": ("README.md", "docs/quickstart.md", "docs/README.md"),
    "Guides": (
        "docs/recreated-topic.md",
        "docs/clients.md",
        "docs/stale-broker.md",
        "docs/agent.md",
        "docs/monitor.md",
        "docs/upgrade.md",
        "docs/monitor-spark.md",
        "deploy/README.md",
        "docs/tls.md",
        "docs/why.md",
        "docs/timeline.md",
        "docs/share-a-capture.md",
        "docs/corpus.md",
        "docs/errors.md",
        "docs/changes.md",
        "docs/diff.md",
        "docs/faq.md",
    ),
    "Reference": (
        "docs/tables.md",
        "docs/metrics.md",
        "docs/python.md",
        "docs/agent-reference.md",
        "docs/monitor-reference.md",
        "CHANGELOG.md",
    ),
    "Explanation": (
        "docs/how-it-works.md",
        "docs/extend.md",
        "docs/limits.md",
        "SECURITY.md",
        "docs/compare.md",
        "docs/performance.md",
        "CONTRIBUTING.md",
    ),
    "Incidents": ("docs/incidents/README.md",),
    "Alerts": ("dashboards/README.md",),
}
"""By section of the navigation its pages, in order; those of a folder that is named in FOLDERS follow them."""
FOLDERS = {"Incidents": "docs/incidents", "Alerts": "dashboards/runbooks"}
INDEX, ERRORS = "CHECKS.md", "checks/errors.md"
UNTITLED = {"README.md": "wirecheck", INDEX: "By code", ERRORS: "By Kafka's error names"}
"""What the navigation calls pages whose own title is too long for it."""
LINK = re.compile(r"(?:\]\(|src(?:set)?=\")(?!\w+:|#)([^)#\"]+)")
CODE = re.compile(r"\b(?:" + "|".join(FAMILIES) + r")\d{3}\b")
APART = re.compile(r"(^```.*?^```$|`[^`\n]*`|\[[^]\n]*\]\([^)\n]*\)|^#.*?$)", re.MULTILINE | re.DOTALL)
"""What no link is put into: fenced blocks, words in backticks, links, headings."""
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"(?:[*-]|\d+\.) ")


def pages() -> dict[str, str]:
    """Every page by its path in the site, as Markdown."""
    found = {path: (ROOT / path).read_text("utf-8") for path in reached()}
    spoken = found | {check_path(code): listed_checks.page(code) for code in listed_checks.LISTED}
    index = {INDEX: check_index(), ERRORS: error_index(spoken)}
    checks = {check_path(code): check_page(code, spoken) for code in listed_checks.LISTED}
    ready = {path: spaced(linked(text, path)) for path, text in found.items() if path != INDEX}
    return ready | {path: linked(text, path) for path, text in (index | checks).items()}


def files() -> list[str]:
    """What pages link to and is no page: pictures, scripts, schemas."""
    linked_to = {target for path in reached() for target in targets(path)}
    return sorted(target for target in linked_to if not target.endswith(".md") and (ROOT / target).is_file())


def reached() -> list[str]:
    """Pages to begin with, those of FOLDERS, and all that these lead to."""
    first = [path for section in BEGIN.values() for path in section]
    first += [path for folder in FOLDERS.values() for path in in_folder(folder)]
    found: dict[str, None] = {}
    while first:
        path = first.pop(0)
        if path not in found:
            found[path] = None
            first += [target for target in targets(path) if target.endswith(".md")]
    return list(found)


def in_folder(folder: str) -> list[str]:
    paths = sorted((ROOT / folder).glob("*.md"))
    return [path.relative_to(ROOT).as_posix() for path in paths if path.name != "README.md"]


def targets(path: str) -> list[str]:
    """What a page of the repository links to, as paths from its root."""
    folder = (ROOT / path).parent
    text = beginning() if path == INDEX else (ROOT / path).read_text("utf-8")
    named = [(folder / target).resolve() for target in LINK.findall(text)]
    return [target.relative_to(ROOT).as_posix() for target in named if target.is_relative_to(ROOT)]


def check_path(code: str) -> str:
    return f"checks/{code}.md"


def check_page(code: str, spoken: Mapping[str, str]) -> str:
    """One check: its page, what its kind and status mean, Kafka's errors in it, and who else speaks of it."""
    check, text = listed_checks.LISTED[code], spoken[check_path(code)].removeprefix("#")
    head, rest = text.split("\n\n", 2)[0], text.split("\n\n", 2)[2]
    meant = [f"- *{check.kind}*: {listed_checks.KINDS[check.kind]}."]
    meant += (
        [f"- *{check.status}*: {listed_checks.STATUSES[check.status]}."]
        if check.status in listed_checks.STATUSES
        else []
    )
    each = "each combination of " if "," in check.one_per else "each "
    meant += [f"- One finding for {each}{check.one_per}."]
    named = ", ".join(f"[{error}](errors.md#{anchor(error)})" for error in errors_in(text))
    others = [path for path, page in spoken.items() if code in CODE.findall(page) and belongs(path)]
    said = ", ".join(f"[{title(spoken[path])}](../{path})" for path in others)
    return (
        "\n".join([head, "", *meant, "", rest])
        + f"\n**On a terminal.** `wirecheck explain {code}`.\n"
        + (f"\n**Kafka's errors.** {named}.\n" if named else "")
        + (f"\n**See also.** {said}.\n" if said else "")
    )


def belongs(path: str) -> bool:
    """Pages worth a visit from a check: incidents and runbooks."""
    return any(path.startswith(f"{folder}/") and not path.endswith("README.md") for folder in FOLDERS.values())


def beginning() -> str:
    """What CHECKS.md says before its lists, whose links lead to the repository's own texts."""
    return (ROOT / INDEX).read_text("utf-8").partition("\n## ")[0]


def check_index() -> str:
    """The beginning of CHECKS.md, and the checks by family, each in a sentence that leads to its page."""
    lines = [beginning(), ""]
    lines += ["To look up an error, see the [index by Kafka's error names](checks/errors.md).", ""]
    for family, name in FAMILIES.items():
        lines += [f"## {name}", "", "| check | kind | detects |", "|---|---|---|"]
        rows = [check for check in listed_checks.LISTED.values() if check.code.startswith(family)]
        lines += [listed_checks.row(check, check_path(check.code)) for check in rows]
        lines += [""]
    return "\n".join(lines)


def kafka_errors() -> dict[str, int]:
    """Kafka's error names, to their numbers."""
    lines = (ROOT / "decode/schemas/errors.tsv").read_text("ascii").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return {name: int(number) for number, name, *_ in rows if name != "NONE"}


def errors_in(text: str) -> list[str]:
    words = set(re.findall(r"[A-Z][A-Z0-9_]+", text))
    return [name for name in kafka_errors() if name in words]


def anchor(error: str) -> str:
    return error.lower()


def error_index(spoken: Mapping[str, str]) -> str:
    """Every error of Kafka, with the checks, incidents and runbooks that speak of it."""
    places: dict[str, list[str]] = {}
    for path in sorted(spoken, key=lambda path: not path.startswith("checks/")):
        if path.startswith("checks/") or belongs(path):
            for error in errors_in(spoken[path]):
                places.setdefault(error, []).append(path)
    named = [error for error in kafka_errors() if error in places]
    lines = [
        "# By Kafka's error names",
        "",
        "`wirecheck decode INPUT --error` shows every response with an error, with its topic and latency. A single",
        "error is rarely a fault. These pages describe when it is:",
        "",
    ]
    for error in named:
        lines += [f"## {error}", "", f"Error {kafka_errors()[error]}.", ""]
        lines += [f"- [{title(spoken[path])}]({from_checks(path)})" for path in places[error]]
        lines += [""]
    rest = [f"{error} ({number})" for error, number in kafka_errors().items() if error not in places]
    return "\n".join([*lines, "## Without a check", "", ", ".join(rest) + ".", ""])


def from_checks(path: str) -> str:
    return path.removeprefix("checks/") if path.startswith("checks/") else f"../{path}"


def linked(text: str, path: str) -> str:
    """The codes of checks in a page lead to their pages."""
    up = "../" * path.count("/")
    own = Path(path).stem

    def link(code: re.Match[str]) -> str:
        known = code[0] in listed_checks.LISTED and code[0] != own
        return f"[{code[0]}]({up}{check_path(code[0])})" if known else code[0]

    parts = APART.split(text)
    return "".join(part if at % 2 else CODE.sub(link, part) for at, part in enumerate(parts))


def spaced(text: str) -> str:
    """A list begins behind an empty line: GitHub does not ask for one, Python's Markdown does."""
    return "".join(block if at % 2 else lists_apart(block) for at, block in enumerate(FENCE.split(text)))


def lists_apart(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        if ITEM.match(line) and before and not ITEM.match(before) and not before.startswith("  "):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def title(text: str) -> str:
    found = re.search(r"^#+ (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def navigation(ready: Mapping[str, str]) -> list[object]:
    """Sections with their pages; checks and alerts are parts of the reference; other linked pages come last."""
    families = [
        {name: [check_path(code) for code in listed_checks.LISTED if code.startswith(family)]}
        for family, name in FAMILIES.items()
    ]
    checks = {"Checks": [*({UNTITLED[path]: path} for path in (INDEX, ERRORS)), *families]}
    sections: list[object] = []
    for section in BEGIN:
        parts = [checks, {"Alerts": list(entries("Alerts", ready))}] if section == "Reference" else []
        if section != "Alerts":
            sections.append({section: [*parts, *entries(section, ready)]})
    placed = set(paths(sections))
    return [*sections, {"Packages": [path for path in ready if path not in placed]}]


def entries(section: str, ready: Mapping[str, str]) -> Iterator[object]:
    for path in (*BEGIN[section], *(in_folder(FOLDERS[section]) if section in FOLDERS else ())):
        if path in ready:
            yield {UNTITLED[path]: path} if path in UNTITLED else path


def paths(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, Mapping):
        yield from paths([*entry.values()])
    elif isinstance(entry, Iterable):
        for one in entry:
            yield from paths(one)
