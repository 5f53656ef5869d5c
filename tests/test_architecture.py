"""Import rules between packages and folders, the length of functions, and unique names of public classes.

Reads only the text of the sources: they are parsed, never imported. Long loops of compiled modules are exempt from the
limit on functions, each by name.
"""

import ast
import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from wirecheck import extension_modules

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "wirecheck."
PACKAGES = ("capture", "commands", "dashboards", "decode", "judge", "questions", "session", "story", "streaming")
MAY_IMPORT = {
    "decode": set(),
    "capture": {"decode"},
    "questions": {"decode"},
    "judge": {"decode", "capture.frames"},
    "story": {"judge", "decode.peer"},
    "streaming": {
        "decode",
        "judge",
        "story",
        "questions",
        "capture.frames",
        "capture.frames_file",
        "capture.frames_file_name",
    },
    "dashboards": {"story", "decode.peer", "judge.checks.page", "judge.checks.listed_checks"},
    "session": {"capture", "decode", "judge", "questions", "story", "streaming", "dashboards"},
    "commands": {
        "capture",
        "decode",
        "judge",
        "questions",
        "session",
        "story",
        "streaming",
        "dashboards",
    },  # composes them, and decides nothing
}
INSIDE = {
    "streaming/store": set(),
    "streaming/steps": {"streaming/store"},
    "streaming/spark": {"streaming/steps", "streaming/store", "streaming/checkpoint.py"},
    "streaming/run": {"streaming/spark", "streaming/steps", "streaming/store", "streaming/checkpoint.py"},
    "capture/evidence": {"capture/agent", "capture/source", "capture"},
    "capture/link": {"capture"},
    "capture/source": {"capture/link", "capture"},
    "capture/tls": {"capture"},
    "capture/trim": {"capture"},
    "capture/agent": {"capture/source", "capture/link", "capture/tls", "capture/trim", "capture"},
    "judge/ledger": {"judge/claims", "judge/thresholds.py"},
    "judge/topology": {"judge/claims", "judge/claims/extract", "judge/ledger"},
    "judge/results": {"judge/claims", "judge/ledger", "judge/topology", "judge/checks", "judge"},
    "decode/interpret": set(),
    "decode/layouts": {"decode/interpret", "decode/schemas", "decode"},
    "decode/log": {"decode/interpret", "decode/layouts", "decode/schemas", "decode"},
    "decode/connection": {
        "decode/connection/stream",
        "decode/connection/framing",
        "decode/connection/state",
        "decode/interpret",
        "decode/layouts",
        "decode/log",
        "decode",
    },
    "decode/connection/stream": {"decode/connection/limits.py"},
    "decode/connection/framing": {
        "decode/connection/stream",
        "decode/connection",
        "decode/interpret",
        "decode/layouts",
        "decode/log",
        "decode",
    },
    "decode/connection/state": {"decode/connection/stream", "decode/connection"},
    "decode/show": {"decode/connection", "decode/layouts", "decode/schemas", "decode"},
}
"""The walls inside the packages: which folders, or single modules, of its own package the modules of a folder may
import, besides their own."""
SHARED_CLASS_NAMES = {
    "capture Batch", "capture Payloads", "decode Chunk", "decode Columns",
    "decode Connection", "decode Field", "decode Frame", "decode Rows",
    "judge Column",
}  # fmt: skip
"""Public classes that share a name with another one of their package. This set may only shrink."""
BOUNDARIES = {
    "scapy": {"capture/source/interface.py"},
    "pyspark": {"streaming/spark", "streaming/run"},
    "pandas": {"streaming/spark", "wirecheck/library_values.py"},
    "py4j": {"streaming/spark", "streaming/run"},
    "cryptography": {"capture/tls/record_keys.py"},
    "deltalake": {"streaming/store/delta_tables.py", "streaming/store/delta_upkeep.py"},
    "jinja2": {"dashboards/report"},
    "click": {"wirecheck/cli.py", "commands"},
    "prometheus_client": {
        "capture/agent/agent_metrics.py",
        "streaming/run/metrics_page.py",
        "streaming/run/web_server.py",
        "wirecheck/http_server.py",
    },
}
SHARED = {
    "__file__",
    "__version__",
    "child_python",
    "client_ids",
    "colours",
    "document",
    "extension_modules",
    "frame",
    "http_server",
    "lasting",
    "processors",
    "wording",
}
"""What every package may import from the one above them. It imports none of them."""
COMPILED = {ROOT / path for path in extension_modules.listed()}
OWN = [
    ROOT / "wirecheck" / name
    for name in (
        "__init__.py",
        "__main__.py",
        "child_python.py",
        "cli.py",
        "client_ids.py",
        "colours.py",
        "document.py",
        "extension_modules.py",
        "frame.py",
        "http_server.py",
        "lasting.py",
        "library.py",
        "library_values.py",
        "processors.py",
        "wording.py",
    )
]
SOURCES = [*sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py")), *OWN]


@cache
def parsed(path: Path) -> ast.Module:
    tree = ast.parse(path.read_text())
    gc.freeze()  # the collector of cycles would look through all trees again and again: two thirds of the time
    return tree


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imports_of(path: Path) -> tuple[str, ...]:
    return tuple(imported(parsed(path)))


@cache
def ours_of(path: Path) -> set[str]:
    """What a module imports of the project, without the package's name."""
    ours = {name.removeprefix(PACKAGE) for name in imports_of(path) if name.startswith(PACKAGE)}
    return {name for name in ours if name.split(".")[0] not in SHARED}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(path): path for path in SOURCES}


def wrong(rule: Callable[[Path], set[str]], paths: Iterable[Path]) -> dict[str, set[str]]:
    """By module what a rule says against it."""
    return {relative(path): found for path in paths if (found := rule(path))}


@cache
def modules_of(path: Path) -> set[str]:
    """The modules of ours that one imports, wherever in its text."""
    names = ours_of(path)
    longest = {name for name in names if name in MODULES}
    return {name for name in longest if not any(other.startswith(f"{name}.") for other in longest)} - {module(path)}


def test_the_walls_inside_a_room_hold():
    def strangers(path):
        folder = path.parent.relative_to(ROOT).as_posix()
        if folder not in INSIDE:
            return set()
        package = folder.split("/")[0]
        inner = {relative(MODULES[name]) for name in modules_of(path)}
        inner = {name for name in inner if name not in INSIDE[folder] and name.startswith(f"{package}/")}
        return {name.rpartition("/")[0] for name in inner} - INSIDE[folder] - {folder}

    assert wrong(strangers, SOURCES) == {}


def test_no_modules_import_each_other_in_a_circle():
    edges = {name: modules_of(path) for name, path in MODULES.items()}
    while leaves := {name for name, found in edges.items() if not found & edges.keys()}:
        edges = {name: found for name, found in edges.items() if name not in leaves}
    assert sorted(edges) == []


BOTH_WAYS = {
    ("decode", "decode.connection"),
    ("decode.connection", "decode.connection.framing"),
    ("judge.checks", "judge.results"),
}
"""Folders of a package of which each has modules that import some of the other. This set may only shrink."""


def test_folders_of_a_package_import_each_other_one_way():
    arrows = {
        tuple(".".join(MODULES[one].parent.relative_to(ROOT).parts) for one in (name, other))
        for name, path in MODULES.items()
        for other in modules_of(path)
        if name.split(".")[0] == other.split(".")[0] in PACKAGES
    }
    assert {(one, other) for one, other in arrows if one < other and (other, one) in arrows} == BOTH_WAYS


def test_a_package_is_imported_by_the_packages_name_only():
    bare = {relative(path): sorted(n for n in imports_of(path) if n.split(".")[0] in PACKAGES) for path in SOURCES}
    assert {name: found for name, found in bare.items() if found} == {}
    linked = {link.name: link.readlink().as_posix() for link in (ROOT / "wirecheck").iterdir() if link.is_symlink()}
    assert linked.pop("example.pcap.gz").startswith("../examples/"), "what `wirecheck demo` shows"
    assert linked == {package: f"../{package}" for package in PACKAGES}


def test_public_class_names_are_unique_within_a_package():
    named = Counter(
        f"{relative(path).split('/')[0]} {node.name}"
        for path in SOURCES
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    shared = {name for name, count in named.items() if count > 1}
    assert shared - SHARED_CLASS_NAMES == set(), "rename one of them, or make it private"
    assert SHARED_CLASS_NAMES - shared == set(), "no longer shared: remove it from SHARED_CLASS_NAMES"


def test_a_room_imports_only_what_the_plan_allows():
    def strangers(path):
        package = relative(path).split("/")[0]
        if package not in MAY_IMPORT:
            return set()
        ours = ours_of(path)
        allowed = MAY_IMPORT[package] | {package}
        found = {name for name in ours if not any(name == a or name.startswith(a + ".") for a in allowed)}
        # `from capture import frames` names the package first; the module it takes is what counts
        return found - {name.split(".")[0] for name in allowed if "." in name and any(o.startswith(name) for o in ours)}

    assert wrong(strangers, SOURCES) == {}


def test_a_boundary_library_stays_behind_its_module():
    def strangers(path):
        here = relative(path)
        return {
            library
            for library in (name.split(".")[0] for name in imports_of(path))
            if library in BOUNDARIES
            and not any(here == home or here.startswith(home + "/") for home in BOUNDARIES[library])
        }

    assert wrong(strangers, SOURCES) == {}


def test_the_command_line_imports_a_package_only_when_it_is_asked_for():
    def slow(path):
        statements = [node for node in parsed(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
        at_import = {name.removeprefix(PACKAGE).split(".")[0] for node in statements for name in imported(node)}
        ours = set(PACKAGES) - {"commands", "session"}
        return at_import & {*ours, "pyarrow", "numpy", "pyspark", "pandas", "rich"}

    assert wrong(slow, [*OWN, *(path for name in ("commands", "session") for path in (ROOT / name).glob("*.py"))]) == {}


def test_the_library_does_not_stand_on_the_command_line():
    def commands(path):
        return {name for name in ours_of(path) if name.split(".")[0] == "commands"}

    assert wrong(commands, (path for path in OWN if path.name not in {"cli.py", "__main__.py"})) == {}


def test_what_is_compiled_takes_its_constants_from_what_is_compiled():
    """mypyc copies the value of a Final; nobody would notice a change of it in a module that is not in the digest."""

    def taken(path):
        return {
            f"{node.module}.{alias.name}"
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE)
            for alias in node.names
            if alias.name.lstrip("_").isupper() and MODULES[node.module.removeprefix(PACKAGE)] not in COMPILED
        }

    assert wrong(taken, COMPILED) == {}


def test_every_room_has_a_page():
    assert [package for package in PACKAGES if not (ROOT / package / "README.md").is_file()] == []


def test_every_test_is_run_by_a_verb():
    verbs = (ROOT / "Makefile").read_text()
    tests = ROOT / "tests"
    modules = [path.name for path in tests.glob("test_*.py")]
    folders = [path.name for path in tests.iterdir() if any(path.rglob("test_*.py"))]
    assert [name for name in sorted(modules + folders) if f"tests/{name}" not in verbs] == []


@cache
def bound(path: Path) -> set[str]:
    """Names that a module has at its top level, and where it looks them up itself, none."""
    names, left = set[str](), list[ast.AST](parsed(path).body)
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((one.asname or one.name).split(".")[0] for one in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        else:
            left += ast.iter_child_nodes(node)
    return names


@cache
def file_of(name: str) -> Path | None:
    path = ROOT.joinpath(*name.split("."))
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


def test_what_is_imported_of_the_project_exists():
    """Also in tests and tools, which no type checker reads."""
    missing = []
    for folder in (*PACKAGES, "wirecheck", "bench", "fuzz", "tests", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(parsed(path)):
                if (
                    not isinstance(node, ast.ImportFrom)
                    or node.module is None
                    or (known := file_of(node.module)) is None
                ):
                    continue
                names = bound(known)
                missing += [
                    f"{relative(path)}:{node.lineno} {node.module}.{one.name}"
                    for one in node.names
                    if one.name not in names
                    and "__getattr__" not in names
                    and file_of(f"{node.module}.{one.name}") is None
                ]
    assert missing == []
