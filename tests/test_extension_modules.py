"""Compiled or plain: which is chosen, what an edited source does, and what happens where nothing can be compiled."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry, generate_latest

import wirecheck
from tests.capture.agent.test_live_agent import may_listen
from wirecheck import cli, extension_modules
from wirecheck.capture.agent.agent_metrics import AgentCollector
from wirecheck.capture.agent.counts import Counts
from wirecheck.capture.agent.live_agent import Listening, listen
from wirecheck.capture.frames import Stamp
from wirecheck.commands import doctor
from wirecheck.streaming.run import monitor
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.run.plan import Plan
from wirecheck.streaming.spark.pipeline import Job
from wirecheck.streaming.steps.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
SUFFIX = extension_modules.SUFFIX
SOURCE = "from mypy_extensions import i64\n\n\ndef twice(n: i64) -> i64:\n    return n + n\n"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """One with a module `wirecheck.numbers.sums` in the list, and nothing compiled."""
    for name in ("WIRECHECK_PURE", "WIRECHECK_COMPILED"):
        monkeypatch.setenv(name, "")  # so that it is undone even if a test lets the code set it
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    package = tmp_path / "wirecheck"
    (package / "numbers").mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from wirecheck import extension_modules as e\ne.PLAIN = e.insisted(e.choose())\n"
    )
    (package / "numbers/__init__.py").touch()
    (package / "numbers/sums.py").write_text(SOURCE)
    (package / "extension_modules.txt").write_text("# a line each\nnumbers/sums.py\n")
    shutil.copy(ROOT / "wirecheck/extension_modules.py", package)
    return tmp_path


def loaded(checkout):
    spec = importlib.util.spec_from_file_location("theirs", checkout / "wirecheck/extension_modules.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def found(name):
    """The file of a module as the finders in front of Python's own find it."""
    specs = [finder.find_spec(name) for finder in sys.meta_path if type(finder).__name__ == "Places"]
    return next((Path(spec.origin) for spec in specs if spec), None)


def compiled(checkout):
    """As setup.py leaves it."""
    theirs = loaded(checkout)
    theirs.folder().mkdir(parents=True)


def test_where_nothing_was_compiled_the_plain_source_runs(checkout):
    assert loaded(checkout).choose() == "nothing was compiled"
    assert found("wirecheck.numbers.sums") is None


def test_what_a_checkout_compiled_of_these_sources_runs(checkout):
    compiled(checkout)
    assert loaded(checkout).choose() == ""
    folder = loaded(checkout).folder() / "wirecheck"
    assert found("wirecheck.numbers.sums") == folder / f"numbers/sums{SUFFIX}"
    assert found("wirecheck.compiled__mypyc") == folder / f"compiled__mypyc{SUFFIX}"
    assert found("wirecheck.numbers") is None


@pytest.mark.parametrize("edited", ["numbers/sums.py", "extension_modules.txt"])
def test_an_edited_source_wins_and_one_line_says_so(checkout, edited, capsys):
    compiled(checkout)
    with (checkout / "wirecheck" / edited).open("a") as file:
        file.write("# edited\n")
    assert loaded(checkout).choose() == "edited since it was compiled"
    assert found("wirecheck.numbers.sums") is None
    printed = capsys.readouterr().err
    assert printed.startswith("wirecheck: plain source: edited since it was compiled; fix: ")
    assert printed.count("\n") == 1
    loaded(checkout).choose()  # as another process of the same run
    assert capsys.readouterr().err == ""


def test_a_source_that_was_only_touched_is_not_edited(checkout):
    compiled(checkout)
    os.utime(checkout / "wirecheck/numbers/sums.py", (1, 1))
    assert loaded(checkout).choose() == ""


def test_plain_source_can_be_chosen_beside_compiled_files(checkout, monkeypatch):
    compiled(checkout)
    (checkout / f"wirecheck/numbers/sums{SUFFIX}").touch()  # as a wheel has it
    assert loaded(checkout).choose() == ""
    assert found("wirecheck.numbers.sums") is None
    monkeypatch.setenv("WIRECHECK_PURE", "1")
    assert loaded(checkout).choose() == "WIRECHECK_PURE=1"
    assert found("wirecheck.numbers.sums") == checkout / "wirecheck/numbers/sums.py"


def test_who_insists_on_compiled_files_gets_no_plain_source(checkout, monkeypatch):
    monkeypatch.setenv("WIRECHECK_COMPILED", "1")
    theirs = loaded(checkout)
    assert theirs.insisted("") == ""
    with pytest.raises(ImportError):
        theirs.insisted(theirs.choose())


def run(checkout, *command, **more):
    environment = {**os.environ, **more, "PYTHONPATH": str(checkout)}
    command = [sys.executable, *command]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def used(checkout, **more):
    said = "import wirecheck.numbers.sums as s; print(s.twice(21), s.__file__.rpartition('.')[2])"
    result = run(checkout, "-c", said, **more)
    return result.stdout.split(), result.stderr.count("\n"), result.returncode


def test_what_setup_compiles_runs_until_it_is_edited(checkout):
    shutil.copy(ROOT / "setup.py", checkout)
    result = run(checkout, "setup.py", "-q", "build_ext", "--inplace", CC="/bin/false")
    assert (result.returncode, "wirecheck: not compiled, the plain source will run: " in result.stderr) == (0, True)
    assert used(checkout) == (["42", "py"], 0, 0)
    if run(checkout, "setup.py", "-q", "build_ext", "--inplace", WIRECHECK_COMPILED="1", CFLAGS="-O0").returncode:
        pytest.skip("no C compiler, or no Python.h")
    assert used(checkout, WIRECHECK_COMPILED="1") == (["42", "so"], 0, 0)
    assert used(checkout, WIRECHECK_PURE="1") == (["42", "py"], 0, 0)
    (checkout / "wirecheck/numbers/sums.py").write_text(SOURCE.replace("n + n", "3 * n"))
    assert used(checkout) == (["63", "py"], 1, 0)


@pytest.mark.parametrize(("insisted", "code"), [("", 0), ("1", 1)])
def test_without_mypyc_it_is_a_line_or_an_error(checkout, insisted, code):
    shutil.copy(ROOT / "setup.py", checkout)
    hidden = (
        "import sys, runpy; sys.modules['mypyc'] = None; sys.argv[1:] = ['-q', 'build']; runpy.run_path('setup.py')"
    )
    result = run(checkout, "-c", hidden, WIRECHECK_COMPILED=insisted)
    assert (result.returncode, result.stderr.startswith("wirecheck: not compiled, the plain source")) == (
        code,
        code == 0,
    )
    assert used(checkout) == (["42", "py"], 0, 0)


PLAINLY = "plain source (WIRECHECK_PURE=1), tens of times slower than compiled: carries about 7,000 frames/s"


@pytest.mark.parametrize(
    ("why", "line"),
    [
        ("", ("code", "ok", "compiled", "")),
        ("WIRECHECK_PURE=1", ("code", "warn", PLAINLY, "unset WIRECHECK_PURE")),
    ],
)
def test_the_doctor_says_which_runs(why, line, monkeypatch):
    monkeypatch.setattr(extension_modules, "PLAIN", why)
    assert doctor.of_code() == line


SLOW = f"{PLAINLY}; fix: unset WIRECHECK_PURE"


@pytest.mark.skipif(not may_listen(), reason="needs CAP_NET_RAW")
@pytest.mark.parametrize(("why", "line"), [("", []), ("WIRECHECK_PURE=1", [SLOW])])
def test_an_agent_says_in_one_line_that_it_is_slow(why, line, tmp_path, monkeypatch):
    monkeypatch.setattr(extension_modules, "PLAIN", why)
    said = []
    listen(Listening(("lo",), (9,), duration_s=0.05), tmp_path, Stamp("prod", "agent"), said.append)
    assert [one for one in said if "plain source" in one] == line


@pytest.mark.parametrize(("why", "line"), [("", []), ("WIRECHECK_PURE=1", [SLOW])])
def test_a_monitor_says_in_one_line_that_it_is_slow(why, line, monkeypatch):
    monkeypatch.setattr(extension_modules, "PLAIN", why)
    monkeypatch.setattr(monitor, "prepared", lambda *_: (Job("", "", "", ""), Settings(), None))
    monkeypatch.setattr(monitor, "workplace", lambda _: 1 / 0)  # as far as it goes here
    said = []
    watch = monitor.Watch(Plan("", "", ""), Page(), Event(), said.append)
    with pytest.raises(ZeroDivisionError):
        monitor.begin(Settings(), watch)
    assert said == line


@pytest.mark.parametrize(("why", "shown"), [("", "1.0"), ("nothing was compiled", "0.0")])
def test_the_metrics_say_which_runs(why, shown, monkeypatch):
    monkeypatch.setattr(extension_modules, "PLAIN", why)
    agent, judging = CollectorRegistry(), CollectorRegistry()
    agent.register(AgentCollector(Counts()))
    judging.register(Page())
    assert f"\nwirecheck_agent_compiled {shown}\n" in generate_latest(agent).decode()
    assert f"\nwirecheck_compiled {shown}\n" in generate_latest(judging).decode()


def test_the_version_says_which_runs():
    printed = CliRunner().invoke(cli.main, ["--version"]).stdout
    assert printed == f"wirecheck {wirecheck.__version__}, {extension_modules.running()}\n"


def test_what_the_list_names_is_there_in_order():
    listed = extension_modules.listed()
    assert [path for path in listed if not (ROOT / path).is_file()] == []
    assert listed == sorted(set(listed))


def taking_vecs(path):
    """What a compiled module has that takes a vec as such: functions, classes, methods; and its vec attributes."""
    takers, attributes = set(), set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef) and by_itself(one)]
            takers |= {node.name if one.name == "__init__" else one.name for one in methods}
        elif isinstance(node, ast.FunctionDef) and by_itself(node):
            takers.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            attributes |= {node.target.attr} if ast.unparse(node.annotation).startswith("vec[") else set()
    return takers, attributes


def by_itself(function):
    said = [ast.unparse(one.annotation) for one in function.args.args if one.annotation]
    return any(annotation.startswith(("vec[", "tuple[vec[")) for annotation in said)


def test_who_is_not_compiled_hands_no_vec_to_a_parameter_of_that_type():
    """mypyc 2.4.1 takes a reference to such an argument and never gives it back: its numbers stay for ever. What is
    handed over as Any is taken apart inside, and given back.
    """
    listed = extension_modules.listed()
    found = {extension_modules.name(path): taking_vecs(path) for path in listed}
    wrong = []
    for path in sorted(set(ROOT.glob("[cdjsw]*/**/*.py")) - {ROOT / one for one in listed}):
        if path.relative_to(ROOT).parts[0] not in {"capture", "decode", "judge", "streaming"}:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text())))
        modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)} & found.keys()
        takers = set().union(*(found[module][0] for module in modules))
        attributes = set().union(*(found[module][1] for module in modules))
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        names = {one.id if isinstance(one, ast.Name) else getattr(one, "attr", "") for one in called}
        stores = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
        put = {node.attr for node in stores if ast.unparse(node.value) != "self"}
        wrong += [f"{path.relative_to(ROOT)}: {name}" for name in sorted(names & takers | put & attributes)]
    assert wrong == []
    assert any(takers for takers, _ in found.values())
