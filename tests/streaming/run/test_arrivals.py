"""Every file is taken once, an agent's by number, whatever comes late, goes, or has another name; on any system."""

import os
import random

import pytest
from pyarrow import fs

from wirecheck.streaming.checkpoint import BatchFiles, Position
from wirecheck.streaming.run import arrivals
from wirecheck.streaming.run.arrivals import MOST_AWAITED, Arrivals


@pytest.fixture(params=["disk", "elsewhere"])
def come(request, tmp_path, monkeypatch):
    """Files into the folder, and a start of Arrivals over it."""
    if request.param == "elsewhere":
        system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        monkeypatch.setattr(arrivals, "is_local", lambda _: False)
        monkeypatch.setattr(arrivals, "at", lambda _: (system, ""))
        monkeypatch.setattr(arrivals.Folder, "list_s", 5.0)
    clock = [1000.0]
    monkeypatch.setattr(arrivals.time, "monotonic", lambda: clock[0])
    return Folder(tmp_path, clock)


class Folder:
    def __init__(self, path, clock):
        self.path, self.clock, self.age = path, clock, 0

    def put(self, *names, size=10):
        for name in names:
            file = self.path / (f"a-{name:010d}.parquet" if isinstance(name, int) else name)
            file.write_bytes(bytes(size))
            self.age += 1
            os.utime(file, (self.age, self.age))

    def drop(self, number):
        (self.path / f"a-{number:010d}.parquet").unlink()

    def start(self, positions=None):
        found = Arrivals(str(self.path), positions or {})
        found.look(everywhere=True)
        return found

    def later(self, seconds=10.0):
        self.clock[0] += seconds


def taken(found, most_bytes=1 << 30):
    batch = found.next_batch(most_bytes)
    if batch is None:
        return []
    found.consumed(batch)
    return [int(name[-18:-8]) if name.startswith("a-") else name for name in batch.files]


def test_the_next_file_of_an_agent_is_found_without_a_listing(come, monkeypatch):
    come.put(1, 2)
    found = come.start()
    assert taken(found) == [1, 2]
    monkeypatch.setattr(type(found._folder), "listed", lambda _: pytest.fail("listed"))
    come.put(3, 4)
    found.look()
    assert taken(found) == [3, 4]
    found.look()
    assert taken(found) == []
    assert found.positions() == {"a": Position(1, 5)}


def test_of_files_that_were_read_a_listing_asks_nothing_but_their_names(come, monkeypatch):
    """However many an agent keeps: the first of them, and those that wait."""
    come.put(*range(11, 61))
    asked = []
    ask = arrivals.OnDisk.file
    monkeypatch.setattr(arrivals.OnDisk, "file", lambda folder, name: asked.append(name) or ask(folder, name))
    monkeypatch.setattr(arrivals.Folder, "file", lambda *_: pytest.fail("a listing says it all"))
    found = come.start({"a": Position(1, 59)})
    assert taken(found) == [59, 60]
    assert found.there == {"a": {*range(11, 61)}}
    monkeypatch.undo()
    assert found.lowest() == {"a": 11}
    assert [int(name[-18:-8]) for name in asked] in ([59, 60], [])


def test_an_agent_that_counts_from_one_again_is_known_by_it(come):
    come.put(7, 8, 9)
    found = come.start()
    assert taken(found) == [7, 8, 9]
    come.drop(7)  # as its agent does with the oldest
    come.later()
    found.look()
    assert found.restarted == {}
    come.drop(8), come.drop(9)
    come.put(1, 2)
    come.later()
    found.look()
    assert taken(found) == [1, 2], "below the first that was ever there: the follower names them"
    again = come.start({"a": Position(1, 10)})
    assert again.restarted == {"a": (2, 10)}
    assert taken(again) == []
    come.put(3, 9)
    come.later()
    again.look()
    assert again.restarted == {}


def test_a_file_without_a_byte_is_no_agents_first(come):
    come.put(3, size=0)
    come.put("b-0000000001.parquet", size=0)
    come.put(4, 5)
    assert come.start().lowest() == {"a": 4}


def test_a_folder_that_takes_long_to_list_is_listed_less_often(come, monkeypatch):
    """A twentieth of the time at most goes into listings."""
    come.put(1)
    found = come.start()
    held, lists = type(found._folder).listed, []

    def slow(folder):
        come.later(3.0)
        lists.append(folder)
        return held(folder)

    monkeypatch.setattr(type(found._folder), "listed", slow)
    come.later(6.0)
    for _ in range(70):
        found.look()
        come.later(1.0)
    assert len(lists) == 2


def test_a_batch_is_as_large_as_is_allowed_and_of_what_came_first(come):
    come.put(1, 2, "b-0000000007.parquet", 3, "b-0000000008.parquet")
    found = come.start()
    assert found.waiting() == (5, 50)
    assert taken(found, 25) == [1, 2]
    assert taken(found, 5) == ["b-0000000007.parquet"]
    assert found.waiting() == (2, 20)
    assert taken(found, 100) == [3, "b-0000000008.parquet"]


def test_an_agents_files_go_by_number_whatever_their_times(come):
    come.put(3, 1, 2, "b-0000000001.parquet")
    assert taken(come.start()) == [1, 2, 3, "b-0000000001.parquet"]


def test_a_file_behind_a_hole_is_taken_and_the_one_that_was_held_up_when_it_comes(come):
    come.put(1, 4)
    found = come.start()
    assert taken(found) == [1, 4]
    assert found.positions() == {"a": Position(1, 5, (2, 3))}
    come.put(5, 3)
    found.look()
    assert taken(found) == [5]
    come.later()
    found.look()
    assert taken(found) == [3]
    assert come.start(found.positions()).waiting() == (0, 0)


def test_new_agents_strangers_and_earlier_numbers_are_found_by_a_listing(come):
    come.put(5)
    found = come.start()
    assert taken(found) == [5]
    come.put("b-0000000003.parquet", "notes.parquet", 3, ".a-0000000009.parquet.tmp", "_x.parquet", "readme.txt")
    found.look()
    assert taken(found) == []
    come.later()
    found.look()
    assert taken(found) == ["b-0000000003.parquet", "notes.parquet", 3]
    assert found.positions()["a"] == Position(3, 6, (4,))
    come.later()
    found.look()
    assert taken(found) == []


def test_a_file_that_goes_before_it_is_read_is_awaited_and_one_without_a_byte_is_none(come):
    come.put(1, 2)
    come.put(3, size=0)
    found = come.start()
    come.drop(1)
    come.later()
    found.look()
    assert taken(found) == [2]
    come.put(3)
    found.look()
    assert taken(found) == [3]


def test_links_that_lead_nowhere_and_names_that_are_no_text_are_not_taken(tmp_path):
    come = Folder(tmp_path, [1000.0])
    come.put(1, "b\udcff-0000000001.parquet")
    (tmp_path / "loop-0000000001.parquet").symlink_to(tmp_path / "loop-0000000001.parquet")
    (tmp_path / "gone-0000000001.parquet").symlink_to(tmp_path / "nowhere")
    found = come.start()
    assert taken(found) == [1]
    assert found.no_text == ("b\\xff-0000000001.parquet",)


def test_a_hole_far_below_the_end_of_a_large_batch_is_awaited(come):
    come.put(*range(1, 5), *range(6, 2 * MOST_AWAITED))
    found = come.start()
    taken(found)
    assert found.positions()["a"].awaited == (5,)


def test_a_batch_of_a_long_backlog_has_its_bound_and_the_next_goes_on(come, monkeypatch):
    monkeypatch.setattr(arrivals, "MOST_OF_ONE", 3)
    come.put(*range(1, 6), "b-0000000001.parquet")
    found = come.start()
    assert taken(found) == [1, 2, 3, "b-0000000001.parquet"]
    assert taken(found) == [4, 5]


def test_what_is_remembered_of_holes_is_bounded(come, monkeypatch):
    monkeypatch.setattr(arrivals.Folder, "holds", lambda *_: True)
    come.put(1, 10 * MOST_AWAITED)
    found = come.start()
    taken(found)
    position = found.positions()["a"]
    assert (len(position.awaited), position.next) == (MOST_AWAITED, 10 * MOST_AWAITED + 1)
    assert position.awaited[-1] == 10 * MOST_AWAITED - 1


def test_an_agent_that_is_gone_for_days_is_forgotten_and_one_whose_folder_was_away_is_not(come):
    come.put(1, 2)
    found = come.start()
    taken(found)
    come.drop(1)
    come.drop(2)
    come.later()
    found.look()
    come.later(86400)
    come.put(2)
    found.look()
    assert taken(found) == []
    come.drop(2)
    for _ in range(2):
        come.later(arrivals.FORGET_S)
        found.look()
    assert found.positions() == {}


@pytest.mark.parametrize("seed", range(5))
def test_every_file_is_taken_once_whatever_the_order_and_the_restarts(come, seed):
    chance = random.Random(seed)
    names = [f"{agent}-{number:010d}.parquet" for agent in "ab" for number in range(3, 43)]
    order = sorted(names, key=lambda name: int(name[-18:-8]) + chance.random() * 12)
    found, got = come.start(), []
    while order or found.waiting()[0]:
        some, order = order[:3], order[3:]
        come.put(*some)
        come.later(chance.choice([0.1, 6]) if order else 6)
        found.look()
        batch = found.next_batch(chance.choice([10, 1000]))
        if batch:
            got += batch.files
            found.consumed(batch)
        if chance.random() < 0.2:
            found = come.start(found.positions())
    assert sorted(got) == names
    assert all(not position.awaited for position in found.positions().values())


def test_a_batch_that_is_repeated_is_not_taken_again(come):
    come.put(1, 2, 3)
    found = come.start()
    found.consumed(BatchFiles(("a-0000000001.parquet",), {"a": Position(1, 2)}))
    assert taken(found) == [2, 3]


def test_a_file_far_ahead_that_is_not_the_agents_moves_nothing(come):
    come.put(1, 2, "a-9999999999.parquet")
    found = come.start()
    assert sorted(map(str, taken(found))) == ["1", "2", "9999999999"]
    come.put(3, "a-0000005000.parquet")
    come.later()
    found.look()
    assert sorted(map(str, taken(found))) == ["3", "5000"]
    come.put(4)
    found.look()
    assert taken(found) == [4]
    assert found.positions()["a"] == Position(1, 5)
    assert taken(come.start(found.positions())) == []


def test_a_file_far_ahead_that_is_the_agents_is_taken(come, monkeypatch):
    monkeypatch.setattr(arrivals.Folder, "holds", lambda _folder, _file, agent, number: (agent, number) == ("a", 5000))
    come.put(1, 5000, 9000)
    found = come.start()
    assert sorted(taken(found)) == [1, 5000, 9000]
    assert found.positions()["a"].next == 5001
