"""Every law has a seeded mistake with which it fails (tests/laws/mutations.tsv), and none of these is stale.

Whether the laws fail with them is `make mutations`, which takes minutes. Here nothing runs.
"""

import ast

from tools import mutations

WITHOUT = {
    "test_compiled_and_plain.py::test_every_result_is_the_same_compiled_and_plain":
        "a mistake in the source is in what is compiled of it too",
    "test_following_hostile.py::test_the_cost_of_a_frame_does_not_grow_with_what_came_before":
        "none was found yet: all bounds of this law are reached in its first blocks, and so no cost grows after them",
    "test_fuzz.py::test_the_same_seed_bends_the_same_bytes": "about the fuzzer: it runs no code of the product",
    "test_fuzz.py::test_guarded_bytes_are_read_inside_only": "about the fuzzer: it runs no code of the product",
    "test_fuzz_files.py::test_an_input_is_made_again_from_its_number": "about the fuzzer: reads no file",
    "test_fuzz_files.py::test_a_run_of_minutes_ends_at_its_time_with_its_count":
        "about the fuzzer: when its run ends",
    "test_fuzz_files.py::test_what_must_not_be_is_a_breach_and_the_run_goes_on_behind_it":
        "about the fuzzer: other programs run in place of its own",
    "test_fuzz_tls.py::test_bytes_at_another_place_than_their_ciphertexts_are_a_breach":
        "about the fuzzer: the test itself makes the mistake",
    "test_fuzz_tls.py::test_connections_that_go_through_together_have_ports_and_frames_of_their_own":
        "about the fuzzer: how it puts connections together",
    "test_records.py::test_time_is_in_proportion_to_the_bytes":
        "none was found yet: of eight times the bytes it allows thirty times the time",
    "test_restarts.py::test_a_life_that_forgets_is_told_by_what_differs": "is itself the law with a mistake",
}  # fmt: skip


def laws():
    for path in sorted((mutations.ROOT / mutations.LAWS).glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{path.name}::{node.name}"


def test_every_law_has_a_mutation_or_a_reason_why_none_fits():
    mutated = {one.law.partition("[")[0] for one in mutations.mutations()}
    assert mutated | WITHOUT.keys() == {*laws()}
    assert mutated & WITHOUT.keys() == set()


def test_what_a_mutation_replaces_is_in_its_file_once():
    found = mutations.mutations()
    assert {one: one.places() for one in found} == dict.fromkeys(found, 1)
    assert [one for one in found if one.before == one.after] == []
