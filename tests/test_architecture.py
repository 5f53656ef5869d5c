"""The walls of the house: who may import whom, and how large a piece may grow.

Knows only the sources' text (parsed, never imported). The limits are those of the house style; kernels that numba
compiles and the interpreter's loop are exempt, because a call inside them costs what they exist to save.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("capture", "commands", "decode", "streaming", "dashboards")
MAY_IMPORT = {
    "decode": set(),
    "capture": {"decode"},
    "streaming": {"decode", "wirecheck.capture.frames"},
    "dashboards": set(),
    "commands": {"capture", "decode", "streaming", "dashboards"},  # composes them, and decides nothing
}
BOUNDARIES = {
    "scapy": {"capture/source/interface.py"},
    "pyspark": {"streaming"},
    "pandas": {"streaming"},
    "py4j": {"streaming"},
    "jinja2": {"dashboards/report"},
    "click": {"wirecheck.py", "commands"},
    "prometheus_client": {"capture/agent/agent_metrics.py", "streaming/run/metrics_page.py"},
}
FILE_LINES, FUNCTION_LINES = 300, 50
SOURCES = [*sorted(p for room in ROOMS for p in (ROOT / room).rglob("*.py")), ROOT / "wirecheck.py"]


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_room_imports_only_what_the_plan_allows(path):
    room = relative(path).split("/")[0]
    if room not in MAY_IMPORT:
        return
    ours = {name for name in imported(ast.parse(path.read_text())) if name.split(".")[0] in (*ROOMS, "wirecheck")}
    allowed = MAY_IMPORT[room] | {room}
    strangers = {name for name in ours if not any(name == a or name.startswith(a + ".") for a in allowed)}
    # `from capture import frames` names the package first; the module it takes is what counts
    strangers -= {name.split(".")[0] for name in allowed if "." in name and any(o.startswith(name) for o in ours)}
    assert strangers == set()


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_boundary_library_stays_behind_its_door(path):
    here = relative(path)
    strangers = {
        library
        for library in (name.split(".")[0] for name in imported(ast.parse(path.read_text())))
        if library in BOUNDARIES
        and not any(here == home or here.startswith(home + "/") for home in BOUNDARIES[library])
    }
    assert strangers == set()


@pytest.mark.parametrize("path", [ROOT / "wirecheck.py", *sorted((ROOT / "commands").glob("*.py"))], ids=relative)
def test_the_door_opens_a_room_only_when_it_is_asked_for(path):
    tree = ast.parse(path.read_text())
    statements = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    at_import = {name.split(".")[0] for node in statements for name in imported(node)}
    assert at_import & {*ROOMS[:1], *ROOMS[2:], "pyarrow", "numpy", "numba", "pyspark", "pandas", "rich"} == set()


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and not compiled(node):
                yield f"{relative(path)}:{node.lineno} {node.name}", node


def compiled(node: ast.FunctionDef) -> bool:
    return any("njit" in ast.unparse(decorator) for decorator in node.decorator_list)


def lines(node: ast.FunctionDef) -> int:
    """Lines of code: the docstring is free."""
    body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
    return (node.end_lineno or node.lineno) - body[0].lineno + 1


def test_no_function_is_longer_than_a_screen():
    sizes = sorted(((lines(node), name) for name, node in functions()), reverse=True)
    print("longest:", sizes[:5])
    assert [entry for entry in sizes if entry[0] > FUNCTION_LINES] == []


def test_no_file_is_longer_than_a_newcomer_reads():
    sizes = sorted(((len(path.read_text().splitlines()), relative(path)) for path in SOURCES), reverse=True)
    print("longest:", sizes[:5])
    assert [entry for entry in sizes if entry[0] > FILE_LINES + kernels(ROOT / entry[1])] == []


def kernels(path: Path) -> int:
    """Lines inside compiled functions: they cannot be cut up without cost."""
    return sum(
        (node.end_lineno or 0) - node.lineno + 1
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and compiled(node)
    )


def test_every_module_opens_with_what_it_knows():
    silent = [
        relative(path)
        for path in SOURCES
        if path.name != "__init__.py" and len((ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()) < 3
    ]
    assert silent == []


def test_every_room_has_a_page():
    assert [room for room in ROOMS if not (ROOT / room / "README.md").is_file()] == []


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_what_numba_keeps_is_stamped(path):
    """Or a process would run what it was before a change in another file."""
    assert relative(path) == "decode/compiled.py" or "cache=True" not in path.read_text()
