"""Whether this checkout concludes what another one does: `python -m tools.same BASE [FOLDER ...]` (make same).

    make same BASE=../base [FOLDERS="captures field"]    BASE: a checkout that is set up (git worktree add ../base REF)
    make same FREEZE=1                                   write the list of cases again

Both judge the same bytes: the captures of this checkout, those in FOLDERS (NAME/capture.pcap*), the demo's, and the
cases of the tests as capture files. Cases are frozen by digest (`same_cases.tsv`): one that is new or has changed is
named, so that no edit of a test passes for an edit of the product. What BASE concludes is kept in build/same, by its
commit and the inputs. Exit status: 0 where no line differs, 1 where one does; each is printed.
"""

import csv
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build/same"
CASES = KEPT / "cases"
FROZEN = ROOT / "tools/same_cases.tsv"
SHIPPED = (ROOT / "tests/scenarios/captures", ROOT / "examples")
DEMO = ROOT / "wirecheck/example.pcap.gz"
DIGEST_CHARACTERS = 16
SHOWN_CHARACTERS = 400
"""Of a line that differs."""
Texts = dict[str, list[str]]
"""Lines of the canonical text, by input."""


def captures(folders: Iterable[Path]) -> list[Path]:
    """Each at NAME/capture.pcap, .pcapng, or either with .gz."""
    return sorted(path.resolve() for folder in folders for path in folder.glob("*/capture.pcap*"))


def digest(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()[:DIGEST_CHARACTERS]


def cases() -> dict[str, bytes]:
    """The cases of all checks as capture files, by code and name; without those that cannot be one file."""
    from tests.judge.lab import Lab
    from tests.judge.test_checks import CASES as FUNCTIONS

    found = {}
    for (code, name), function in sorted(FUNCTIONS.items()):
        lab = Lab()
        function(lab)
        lab.talks = [talk for talk in lab.talks if talk.messages]
        if not lab.talks:
            continue
        with suppress(ValueError):  # its hosts are no addresses
            found[f"{code}.{name}"] = lab.pcap()
    return found


def written(found: dict[str, bytes]) -> list[Path]:
    CASES.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, data in found.items():
        path = CASES / f"{name}.pcap"
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
        paths.append(path)
    return paths


def frozen() -> dict[str, str]:
    with FROZEN.open(encoding="ascii", newline="") as file:
        return dict(row for row in csv.reader(file, delimiter="\t"))


def freeze(found: dict[str, bytes]) -> None:
    with FROZEN.open("w", encoding="ascii", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(
            (name, digest(data)) for name, data in found.items()
        )


def changed_cases(found: dict[str, bytes]) -> Iterator[str]:
    known = frozen()
    for name in sorted({*known, *found}):
        if name not in found:
            yield f"case {name} is gone"
        elif name not in known:
            yield f"case {name} is new"
        elif known[name] != digest(found[name]):
            yield f"case {name} has changed"


# --- the text of a checkout


def commit(checkout: Path) -> str | None:
    """None where files differ from the commit: then nothing is kept."""
    git = ["git", "-C", str(checkout)]
    status = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True).stdout
    if status:
        return None
    return subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()


def start(checkout: Path, out: Path, inputs: list[Path]) -> "subprocess.Popen[bytes]":
    """Of all inputs, by the Python of that checkout. -P: nothing but what is installed there is imported."""
    script = str(ROOT / "tools/canonical_text.py")
    process = subprocess.Popen(
        [str(checkout / ".venv/bin/python"), "-P", script, str(out)], stdin=subprocess.PIPE, cwd=checkout
    )
    assert process.stdin is not None
    process.stdin.write("\n".join(map(str, inputs)).encode())
    process.stdin.close()
    return process


def texts(base: Path, inputs: list[Path]) -> tuple[Texts, Texts]:
    """Of the other checkout and of this one, which judge at the same time."""
    KEPT.mkdir(parents=True, exist_ok=True)
    here = KEPT / "here.jsonl"
    process = start(ROOT, here, inputs)
    there = texts_of(base, inputs)
    need_success(process)
    return there, read(here)


def texts_of(base: Path, inputs: list[Path]) -> Texts:
    """Of another checkout: kept ones where it has concluded the same before."""
    KEPT.mkdir(parents=True, exist_ok=True)
    name, script = commit(base), (ROOT / "tools/canonical_text.py").read_bytes()
    key = digest(script, *(part for path in inputs for part in (str(path).encode(), path.read_bytes())))
    kept = KEPT / f"{name}-{key}.jsonl"
    if name is None or not kept.exists():
        part = kept.with_suffix(".part")
        need_success(start(base, part, inputs))
        part.rename(kept)
    return read(kept)


def need_success(process: "subprocess.Popen[bytes]") -> None:
    if process.wait():
        sys.exit(f"{process.args} ended with {process.returncode}")


def read(path: Path) -> Texts:
    return dict(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


def differences(there: Texts, here: Texts) -> Iterator[tuple[str, str]]:
    """(input, line) of each line that one of them lacks, with - or + before it; equal lines count as often as they
    are there.
    """
    for name in here:
        gone, new = list(there.get(name, [])), []
        for line in here[name]:
            if line in gone:
                gone.remove(line)
            else:
                new.append(line)
        yield from ((name, f"-{line}") for line in gone)
        yield from ((name, f"+{line}") for line in new)


def report(there: Texts, here: Texts) -> int:
    found = [*differences(there, here)]
    last = None
    for name, line in found:
        if name != last:
            print(name)
            last = name
        print(f"  {line if len(line) <= SHOWN_CHARACTERS else line[:SHOWN_CHARACTERS] + ' ...'}")
    lines, inputs = sum(map(len, here.values())), len({name for name, _ in found})
    print(f"{len(found)} of {lines} lines differ, in {inputs} of {len(here)} inputs")
    return int(bool(found))


def main(words: list[str]) -> int:
    found = cases()
    if words == ["--freeze"]:
        freeze(found)
        print(f"{len(found)} cases are frozen")
        return 0
    if not words:
        sys.exit("name a checkout to compare with: make same BASE=../base")
    base, *folders = map(Path, words)
    if not (base / ".venv/bin/python").exists():
        sys.exit(f"{base}: no environment there; run `make setup` in it")
    changed = [*changed_cases(found)]
    print(*changed, *([f"{len(changed)} cases are not as frozen"] if changed else []), sep="\n", end="\n")
    inputs = [*captures([*SHIPPED, *folders]), DEMO, *written(found)]
    return report(*texts(base.resolve(), inputs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
