"""Which Java is taken, and what a person is told who has none."""

import pytest

from wirecheck.streaming.spark import java


@pytest.fixture
def installed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "find_spec", lambda _name: None)

    def install(name, release):
        folder = tmp_path / name
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "java").write_text("#!/bin/sh\n")
        (folder / "bin" / "java").chmod(0o755)
        (folder / "release").write_text(release)
        return folder

    return install


def test_java_home_comes_before_the_path(installed, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(installed("chosen", 'JAVA_VERSION="21.0.8"\n')))
    monkeypatch.setenv("PATH", str(installed("other", 'JAVA_VERSION="17.0.15"\n') / "bin"))
    assert java.find_java(tmp_path) == java.Java(tmp_path / "chosen", 21)


def test_an_old_java_home_does_not_hide_a_newer_java(installed, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(installed("old", 'JAVA_VERSION="1.8.0_402"\n')))
    monkeypatch.setenv("PATH", str(installed("new", 'JAVA_VERSION="17.0.15"\n') / "bin"))
    assert java.find_java(tmp_path).version == 17


@pytest.mark.usefixtures("installed")
def test_without_java_one_line_says_what_to_do(tmp_path):
    with pytest.raises(java.JavaMissing, match="Java 17 or newer is needed, found no Java: install one") as missing:
        java.find_java(tmp_path)
    assert "\n" not in str(missing.value)


def test_a_java_that_is_no_program_is_none(installed, monkeypatch, tmp_path):
    folder = installed("broken", "")
    (folder / "release").unlink()
    (folder / "bin" / "java").write_text("neither machine code nor a script")
    monkeypatch.setenv("JAVA_HOME", str(folder))
    with pytest.raises(java.JavaMissing, match="found no Java"):
        java.find_java(tmp_path)


def test_only_an_old_java_is_named(installed, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(installed("old", 'JAVA_VERSION="11.0.2"\n')))
    with pytest.raises(java.JavaMissing, match="found only Java 11 in"):
        java.find_java(tmp_path)


def test_the_shim_drops_the_one_flag_the_wheels_java_cannot_take():
    assert '"$a" = "--add-modules=jdk.incubator.vector"' in java.SHIM.format(java="/x/bin/java")
    assert 'exec "/x/bin/java" "${args[@]}"' in java.SHIM.format(java="/x/bin/java")
