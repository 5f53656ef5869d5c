"""Damaged TLS: some sequences of each kind are undone here, and whoever runs them notices what must not be."""

import argparse

import numpy as np
import pyarrow as pa
import pytest

from fuzz import tls
from fuzz.bend import Draws


@pytest.mark.parametrize("damage", ["net", "bytes"])
def test_a_short_run_finds_nothing(damage, capsys):
    assert tls.run(argparse.Namespace(sequences=20, minutes=None, damage=damage, seed=7)) == 0
    counts = capsys.readouterr().out.splitlines()[-1]
    assert "plain bytes" in counts


def test_bytes_at_another_place_than_their_ciphertexts_are_a_breach(tmp_path):
    rng = np.random.default_rng(1)
    base = tls.Sources(tmp_path).base("1.3", rng)
    whole = tls.Sequences([base], base.rows, base.keys)
    found = tls.undone(tls.batch(base.rows), base.keys, [len(base.rows)])
    tls.vouched(whole, found, tls.Counter())
    payloads = [data[1:] + data[:1] if len(data) > 20 else data for data in found[0].column("payload").to_pylist()]
    place = found[0].schema.get_field_index("payload")
    shifted = [found[0].set_column(place, "payload", pa.array(payloads, pa.binary())), *found[1:]]
    with pytest.raises(AssertionError, match="WRONG BYTES"):
        tls.vouched(whole, shifted, tls.Counter())


def test_connections_that_go_through_together_have_ports_and_frames_of_their_own(tmp_path):
    rng = np.random.default_rng(1)
    bases = tls.Sources(tmp_path).bases(rng)
    some = tls.sequences(bases, (rng, Draws(2)), 5, bent=False)
    connections = {frozenset([(row["src_ip"], row["src_port"]), (row["dst_ip"], row["dst_port"])]) for row in some.rows}
    assert len(connections) == 5
    assert {row["frame_no"] >> tls.FRAME_BITS for row in some.rows} == set(range(5))
