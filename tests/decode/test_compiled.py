"""A kernel that numba kept is compiled anew when what it holds a copy of has changed."""

import importlib.util
import sys

import numpy as np
import pytest
from numba import config

from wirecheck.decode import compiled
from wirecheck.decode.compiled import stamp

INNER = "from numba import njit\n\n@njit\ndef inner(x):\n    return x + {}\n\nFACTOR = {}\n"
MIDDLE = "from numba import njit\nfrom {} import inner\n\n@njit\ndef middle(x):\n    return inner(x)\n"
OUTER = (
    "from wirecheck.decode.compiled import cached_njit\nimport {0} as first\nfrom {1} import middle\n\n"
    "@cached_njit\ndef outer(x):\n    return middle(x) * first.FACTOR\n"
)


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Writes three modules, of which the last calls the first by the second, and loads them as a new process would."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("stamped_inner", "stamped_middle", "stamped_outer")

    def load(added=1, factor=1):
        sources = (INNER.format(added, factor), MIDDLE.format(names[0]), OUTER.format(*names[:2]))
        for name, source in zip(names, sources, strict=True):
            path = tmp_path / f"{name}.py"
            if not path.exists() or path.read_text() != source:  # the outer file stays as it was: numba looks there
                path.write_text(source)
        compiled._source.cache_clear()
        for name in names:
            spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, name, module)
            exec(compile((tmp_path / f"{name}.py").read_text(), str(tmp_path / f"{name}.py"), "exec"), module.__dict__)
        return sys.modules[names[2]].outer

    return load


def test_a_changed_kernel_of_another_file_is_noticed(kernels):
    assert kernels(added=1)(10) == 11
    assert kernels(added=2)(10) == 12


def test_a_changed_number_of_another_file_is_noticed(kernels):
    assert kernels(factor=1)(10) == 11
    assert kernels(factor=3)(10) == 33


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled without JIT")
def test_what_did_not_change_is_not_compiled_again(kernels):
    first, again = kernels(), kernels()
    assert (first(10), again(10)) == (11, 11)
    assert (sum(first.stats.cache_misses.values()), sum(again.stats.cache_hits.values())) == (1, 1)


def test_a_stamp_depends_on_arrays_and_numbers_that_are_named():
    def made(**names):
        def kernel(x):
            return TABLE[x] + NUMBER  # noqa: F821

        return stamp(type(kernel)(kernel.__code__, names))

    first = made(TABLE=np.arange(3), NUMBER=1)
    assert first == made(TABLE=np.arange(3), NUMBER=1, ELSE=5)
    assert len({first, made(TABLE=np.arange(4), NUMBER=1), made(TABLE=np.arange(3), NUMBER=2)}) == 3


def test_the_stamp_of_a_kernel_is_that_of_all_it_calls(kernels):
    """What numba keeps is told apart by it; compiled or not, so that it holds without JIT too."""

    def stamped(**changed):
        outer = kernels(**changed)
        return stamp(getattr(outer, "py_func", outer))

    first = stamped()
    assert stamped() == first
    assert len({first, stamped(added=2), stamped(factor=3), stamped(added=2, factor=3)}) == 4


def ping(n):
    return pong(n - 1) if n else np.int64(0)


def pong(n):
    return ping(n - 1) if n else np.int64(1)


def test_kernels_that_call_each_other_are_stamped_once():
    assert ping(5) != ping(4)
    assert stamp(ping) == stamp(pong)


def test_a_function_that_holds_its_stamp_does_what_it_did():
    def made(y):
        def kernel(x: int, z: int = 2) -> int:
            """Its words."""
            return x * y + z

        return kernel

    plain = made(10)
    stamped = compiled._closed_over(plain, 77)
    assert (stamped(1), stamped(1, 5)) == (plain(1), plain(1, 5)) == (12, 15)
    assert stamped.__code__.co_freevars == (*plain.__code__.co_freevars, compiled.STAMP)
    assert [cell.cell_contents for cell in stamped.__closure__] == [10, 77]
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "__defaults__"):
        assert getattr(stamped, name) == getattr(plain, name)


def test_a_kernel_that_only_borrows_its_arrays_says_what_python_would():
    def largest(x):
        found = x[0]
        for value in x:
            found = max(found, value)
        return found

    assert compiled.borrowing_njit(largest)(np.array([3, 9, 4])) == 9
