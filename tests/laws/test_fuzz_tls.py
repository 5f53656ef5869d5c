"""Damaged TLS: some sequences of each kind are undone here, and whoever runs them notices what must not be."""

import argparse

import pytest

from fuzz import tls
from tests.tls_traffic import certificate


@pytest.mark.parametrize("damage", ["net", "bytes"])
def test_a_short_run_finds_nothing(damage, capsys):
    assert tls.run(argparse.Namespace(sequences=12, damage=damage, seed=7)) == 0
    counts = capsys.readouterr().out.splitlines()[-1]
    assert "plain bytes" in counts


def test_bytes_at_another_place_than_their_ciphertexts_are_a_breach(tmp_path):
    chosen = tls.base("1.3", certificate(tmp_path), tmp_path)
    found = tls.undone(tls.batch(chosen.rows), chosen.keys, [len(chosen.rows)])
    tls.vouched(chosen, chosen.rows, found, tls.Counter())
    row = next(row for row in found if len(row["payload"] or b"") > 20)
    row["payload"] = row["payload"][1:] + row["payload"][:1]
    with pytest.raises(AssertionError, match="WRONG BYTES"):
        tls.vouched(chosen, chosen.rows, found, tls.Counter())
