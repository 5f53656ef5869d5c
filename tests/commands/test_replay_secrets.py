"""What commands say of secrets: they read what was captured, not what was redacted, and repeat none of it."""

import json
import random
import tempfile
from pathlib import Path

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests import traffic as t
from tests.capture import canaries
from tests.decode.connection.conversations import METADATA, request, response
from tests.depth import examples
from tests.laws.test_secrets import HARM, SOME_KINDS, with_malformed
from wirecheck import cli
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.streaming.run.local_replay import LocalReplay
from wirecheck.streaming.steps.settings import Settings

MOST_FINDINGS = 3


def repeated(segments):
    """Where parts of the canary are in what a replay prints, in its page and in its result tables, in the evidence of
    its findings, and in what `decode` prints; and whether any of them was captured.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "capture.pcap"
        path.write_bytes(t.pcap(t.packets(segments)))
        words = ["replay", str(path), "--format", "json", "--out", str(folder / "out")]
        printed = CliRunner().invoke(cli.main, words)
        paged = CliRunner().invoke(cli.main, ["replay", str(path), "--report", str(folder / "page.html"), "-v"])
        decoded = CliRunner().invoke(cli.main, ["decode", str(path), "-V"])
        cut = [*evidence(printed.stdout, path, folder)]
        for one in (printed, paged, decoded):
            assert isinstance(one.exception, SystemExit | None), one.exception
        run = LocalReplay(Settings(exchanges=True))
        captured = b""
        for table in read_frames([path], "default"):
            captured += b"".join(table["payload"].to_pylist())
            run.add(table)
        run.write(folder / "out" / "with exchanges")
        said = b"\0".join(one.output.encode() + one.stderr.encode() for one in (printed, paged, decoded))
        said += b"\0".join(cut)
        said += (folder / "page.html").read_bytes() if (folder / "page.html").exists() else b""
        found = [part for part in canaries.PARTS if part in said]
        tables = sorted((folder / "out").rglob("*.parquet"))
        return found + canaries.leaks(tables), any(part in captured for part in canaries.PARTS)


def evidence(verdict, path, folder):
    """The captures that are cut out for the first findings, one of each check."""
    findings = {finding["code"]: finding["id"] for finding in json.loads(verdict)["findings"] if finding["sides"]}
    for name in [*findings.values()][:MOST_FINDINGS]:
        target = folder / f"{name}.pcapng"
        ran = CliRunner().invoke(cli.main, ["evidence", name, str(path), "-o", str(target)])
        assert isinstance(ran.exception, SystemExit | None), ran.exception
        yield ran.output.encode() + (target.read_bytes() if target.exists() else b"")


@examples(5, deep=12)
@given(
    st.lists(st.sampled_from(sorted(canaries.EXCHANGES)), min_size=1, max_size=16),
    st.sampled_from([40, 200, 1448, 60_000]),
    HARM,
    st.integers(0, 2**32),
)
def test_no_canary_is_in_what_a_replay_says(names, mss, harm, seed):
    found, captured = repeated(canaries.mutated(canaries.traffic(names, mss), random.Random(seed), harm))
    assert captured
    assert found == []


@examples(2, deep=4)
@given(SOME_KINDS, st.integers(0, 2**32), st.sampled_from([20, 1448]))
def test_no_content_of_a_malformed_message_is_in_what_a_replay_says(kinds, seed, mss):
    assert repeated(with_malformed(kinds, seed, mss))[0] == []


def test_a_canary_in_what_is_no_secret_would_be_found():
    talk = t.Talk().open()
    for number in (1, 2):
        asked = request(METADATA, 1, number, bytes(4), client=canaries.WORD.decode())
        talk.request(asked).response(response(number, bytes(12)))
    assert repeated(talk.close().segments)[0]
