"""Writes decode/schemas from a folder of facts about Kafka's releases: `python -m tools.import_schemas FACTS`.

Knows both forms: the facts (one JSON line per message, computed from the releases' jars) and the notation of
decode/schemas (see decode/layouts/layout.py), and which bytes may be kept (`OPEN`). Run when a new
release is added; what it writes is read by eye and owned by the project from then on.
Rule: after writing, every fact must be readable back from the notation; the tool checks that itself.
"""

import json
import sys
from pathlib import Path

from wirecheck.decode.layouts.layout import Field, parse

SCHEMAS = Path(__file__).resolve().parent.parent / "decode" / "schemas"

# What may be kept although its type or name says content: the other message in an Envelope is read, and redacted
# inside; for whom it is, and who asked for a token, is a name.
OPEN = {
    "CreateDelegationToken response": {"tokenRequesterPrincipalType", "tokenRequesterPrincipalName"},
    "DescribeDelegationToken response": {"tokens.tokenRequesterPrincipalType", "tokens.tokenRequesterPrincipalName"},
    "Envelope request": {"requestData", "requestPrincipal", "clientHostAddress"},
    "Envelope response": {"responseData"},
}


def main(facts: Path) -> None:
    used: set[tuple[str, str]] = set()
    for name in ("kafka", "metadata_records", "other"):
        rows = [json.loads(line) for line in (facts / f"{name}.jsonl").read_text().splitlines()]
        text = "\n".join(message(row, used) for row in rows)
        for row, layout in zip(rows, parse(text), strict=True):
            check(row["fields"], layout.fields, layout.versions.high)
        (SCHEMAS / f"{name}.txt").write_text(text)
    declared = {(name, path) for name, paths in OPEN.items() for path in paths}
    assert used == declared, f"open fields that are no fields: {sorted(declared - used)}"
    errors = (line.split("\t") for line in (facts / "errors.tsv").read_text().splitlines())
    (SCHEMAS / "errors.tsv").write_text("".join("\t".join(line) + "\n" for line in errors))
    (SCHEMAS / "releases.txt").write_text(releases(facts / "releases.tsv"))


def message(row: dict, used: set[tuple[str, str]]) -> str:
    key = row.get("key", row.get("type", "-"))
    lines = [f"{key} {row['api']} {row['side']} {ranged(row['versions'])} flexible {ranged(row['flexible'])}"]
    if "aka" in row:
        lines.append(f"  .aka {' '.join(row['aka'])}")
    for header, version in row.get("header", {}).items():
        lines.append(f"  .header {'all' if header == 'all' else ranged(header)}={version}")
    facts = [fact for fact in ("since", "last", "unstable") if row.get(fact)]
    lines += [f"  .{fact} " + " ".join(grouped(row[fact])) for fact in facts]
    if "deprecated" in row:
        lines.append(f"  .deprecated {ranged(row['deprecated'])}")
    name = f"{row['api']} {row['side']}"
    may_be_kept = dict.fromkeys(OPEN.get(name, ()), 0)
    lines += fields(row["fields"], 1, row["versions"], "", may_be_kept)
    for variant in row.get("variants", []):
        lines += variation(variant, may_be_kept)
    used |= {(name, path) for path, times in may_be_kept.items() if times}
    return "\n".join(lines) + "\n"


def variation(variant: dict, may_be_kept: dict[str, int]) -> list[str]:
    releases = ",".join(variant["releases"])
    if variant["kind"] == "tags":
        paths = " ".join(".".join(camel(name) for name in path.split(".")) for path in variant["paths"])
        return [f"  .lacked {ranged(variant['versions'])} in {releases}: {paths}"]
    flexible = "flexible" if variant["flexible"] else "inflexible"
    heading = f"  .changed {ranged(variant['versions'])} in {releases} {flexible}"
    return [heading, *fields(variant["fields"], 2, variant["versions"], "", may_be_kept)]


def fields(rows: list[dict], depth: int, enclosing: str, parent: str, may_be_kept: dict[str, int]) -> list[str]:
    lines = []
    for row in rows:
        path = f"{parent}{camel(row['name'])}"
        words = [camel(row["name"]), kind(row)]
        if span(row["versions"], enclosing) != span(enclosing, enclosing):
            words.append(ranged(row["versions"]))
        if "nullable" in row:
            whole = span(row["nullable"], row["versions"]) == span(row["versions"], row["versions"])
            words.append("?" if whole else f"?{ranged(row['nullable'])}")
        if "tag" in row:
            assert row["tagged"] == row["versions"]
            words.append(f"tag{row['tag']}")
        if "default" in row:
            words.append("=" + json.dumps(row["default"]).strip('"'))
        if row.get("flexible") == "none":
            words.append("inflexible")
        if path in may_be_kept:
            words.append("open")
            may_be_kept[path] += 1
        lines.append("  " * depth + " ".join(words))
        lines += fields(row.get("fields", []), depth + 1, row["versions"], f"{path}.", may_be_kept)
    return lines


def kind(row: dict) -> str:
    if "fields" not in row:
        return row["type"]
    return "[]" if row["type"].startswith("[]") else "{}"


def camel(name: str) -> str:
    return name[0].lower() + name[1:]


def ranged(text: str) -> str:
    return text if text == "none" else f"v{text}"


def span(text: str, enclosing: str) -> tuple[int, int]:
    """Lowest and highest version; an open end is that of what encloses it."""
    low, _, high = text.rstrip("+").partition("-")
    if not text.endswith("+"):
        return int(low), int(high or low)
    return int(low), 10_000 if enclosing.endswith("+") else span(enclosing, enclosing)[1]


def grouped(versions: dict) -> list[str]:
    """`v0-3=3.9` for versions in a row with the same releases."""
    runs: list[list] = []
    for version, releases in versions.items():
        text = releases if isinstance(releases, str) else ",".join(releases)
        if runs and runs[-1][2] == text and runs[-1][1] + 1 == int(version):
            runs[-1][1] += 1
        else:
            runs.append([int(version), int(version), text])
    return [f"v{low}={text}" if low == high else f"v{low}-{high}={text}" for low, high, text in runs]


def releases(path: Path) -> str:
    """One line per API: its range where it changed; listeners by letter, `u` an unstable newest version, `-` gone."""
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    order = list(dict.fromkeys(row[0] for row in rows))
    names = {int(row[1]): row[2] for row in rows}
    seen = {(row[0], int(row[1])): entry(row) for row in rows}
    lines = ["releases " + " ".join(order)]
    for key in sorted(names):
        changes, last = [], "-"
        for release in order:
            now = seen.get((release, key), "-")
            if now != last:
                changes.append(f"{release}={now}")
            last = now
        lines.append(f"{key} {names[key]} " + " ".join(changes))
    return "\n".join(lines) + "\n"


def entry(row: list[str]) -> str:
    listeners = "".join(letter for letter, name in LISTENERS if name in row[6].split(","))
    return f"{row[3]}-{row[4]}" + ("u" if row[5] == "true" else "") + (f"@{listeners}" if listeners else "")


def check(rows: list[dict], fields: tuple[Field, ...], newest: int) -> None:
    """The notation, read back, must say what the facts say, version by version."""
    for row, field in zip(rows, fields, strict=True):
        assert (camel(row["name"]), row.get("tag")) == (field.name, field.tag), row
        assert field.type in {row["type"].removeprefix("[]"), "struct"}, row
        assert field.array == row["type"].startswith("[]"), row
        for version in range(newest + 1):
            here, null = version in field.versions, version in field.nullable
            assert null == within(version, row.get("nullable", "none")), (row, version)
            assert here or not within(version, row["versions"]) or field.versions.high < version, (row, version)
        check(row.get("fields", []), field.fields, newest)


def within(version: int, text: str) -> bool:
    low, high = (1, 0) if text == "none" else span(text, "0+")
    return low <= version <= high


LISTENERS = (("Z", "zkBroker"), ("B", "broker"), ("C", "controller"))

if __name__ == "__main__":
    main(Path(sys.argv[1]))
