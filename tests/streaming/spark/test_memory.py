"""Rows travel in pieces, so that what a step holds does not grow with a batch."""

import subprocess
import sys

from wirecheck.streaming.spark.memory import PIECE_BYTES, in_pieces
from wirecheck.streaming.steps.tagged import EXCHANGES, Tagged


def rows(*sizes):
    return [Tagged("L", number, EXCHANGES, bytes(size)) for number, size in enumerate(sizes)]


def test_a_piece_is_full_with_the_row_that_fills_it():
    tasks = rows(10, PIECE_BYTES - 10, 3, 4, 2 * PIECE_BYTES, 5)
    assert list(in_pieces(tasks)) == [tasks[:2], tasks[2:5], tasks[5:]]
    assert list(in_pieces([])) == []


def test_a_piece_is_there_before_the_next_row_is_made():
    made = []

    def each():
        for row in rows(PIECE_BYTES, PIECE_BYTES):
            made.append(row.bucket)
            yield row

    pieces = in_pieces(each())
    next(pieces)
    assert made == [0]


def test_a_driver_takes_its_tables_from_the_system():
    """In a process of its own: the pool is one for all."""
    code = "import pyarrow as pa; from wirecheck.streaming.spark.memory import hold_little; hold_little()"
    shown = f"{code}; print(pa.default_memory_pool().backend_name)"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout == "system\n"


def test_modules_are_set_apart_once_and_later_cycles_are_still_collected():
    """In a process of its own: the collector is one for all."""
    code = """
import gc
from wirecheck.streaming.spark.memory import freeze_modules
freeze_modules()
first = gc.get_freeze_count()
class Cycle: pass
before = gc.get_freeze_count()
freeze_modules()
assert first > 10_000 and gc.get_freeze_count() == before, "frozen again without a new module"
one = Cycle(); one.itself = one; del one
assert gc.collect() >= 1, "a later cycle is not collected"
import colorsys
freeze_modules()
assert gc.get_freeze_count() > before, "a new module is not set apart"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_batch_leaves_java_with_the_next_one_although_its_dataframe_is_part_of_a_cycle():
    """In a process of its own: the collector is one for all. Java holds a plan as long as Python the frame."""
    code = """
import gc, weakref
from wirecheck.streaming.spark.sinks import table_sink
class Frame:
    def __init__(self): self.itself = self
    def collect(self): return []
class Writer:
    def write(self, *batch): return False
write = table_sink(Writer(), lambda *rows: None, lambda number: None, None, [])
gc.disable()
held = []
for number in range(5):
    frame = Frame()
    held.append(weakref.ref(frame))
    write(frame, number)
del frame
assert sum(each() is not None for each in held) <= 2, held
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
