"""The law of principals: without them, no message of any kind keeps one, nor the address that one comes from.

Every text and every field of bytes of every API, and of every record of the metadata log, holds its own path. What is
left is compared with what names are: those of principals by their words here, not by the code's.
"""

import base64
import json
import re

import numpy as np

from tests.build import CASES, Still, build, filled, plain
from tests.decode.log.batches import batch, entry
from wirecheck.decode.dialect import read
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import Dialect
from wirecheck.decode.log.secrets import LogSecrets
from wirecheck.decode.message import pack
from wirecheck.decode.nested import nested
from wirecheck.decode.secrecy import confidential
from wirecheck.decode.show.message_lines import without_principals

KINDS = sorted(
    {
        (layout.api, layout.side, version)
        for of, layout, version in CASES
        if of == Dialect.KAFKA and layout.side in SIDES[:2]
    }
)
OF_PRINCIPALS = re.compile(
    r"(?i)principal(name|filter)?$|owner$|requester$|entityName$|\.user$|clientHostAddress$|\.match$"
)
OF_ACLS = re.compile(r"\.host(Filter)?$")
OF_SCRAM = re.compile(r"\.(users|deletions|upsertions)\.name$")
CANARY = re.compile(rb"<([A-Za-z0-9_.]+)>")


def canary(path):
    return f"<{path}>"


def content(path, kind):
    return canary(path) if kind == "string" else base64.b64encode(canary(path).encode()).decode()


def is_secret(path):
    api = path.split(".")[0]
    of_acls = "Acl" in api or "AccessControl" in api
    of_scram = "Scram" in api and bool(OF_SCRAM.search(path) or path == f"{api}.name")
    renews = path.endswith(".renewers.value")
    return bool(OF_PRINCIPALS.search(path)) or (of_acls and bool(OF_ACLS.search(path))) or of_scram or renews


def layout_of(api, side, version):
    return next(
        layout for of, layout, v in CASES if (of, layout.api, layout.side, v) == (Dialect.KAFKA, api, side, version)
    )


def left(data, spans):
    kept = bytearray(data)
    for at, length in spans:
        kept[at : at + length] = bytes(length)
    return [found.decode() for found in CANARY.findall(kept)]


def test_no_message_of_any_kind_keeps_a_principal():
    kept, seen = set(), set()
    for api, side, version in KINDS:
        layout = layout_of(api, side, version)
        data = plain(api, side, version, filled(layout.fields, version, content, api), {"correlationId": 1})[4:]
        seen |= {found.decode() for found in CANARY.findall(data)}
        message = pack([data], [SIDES.index(side)], [layout.key], [version])
        spans, _ = confidential(message, np.full(1, -1, np.int64), principals=False)
        kept |= {*left(data, zip(spans.offset.tolist(), spans.length.tolist(), strict=True))}
        line = {"body": nested(read(message), 0)["body"]}
        shown = json.dumps(without_principals(line))
        assert [path for path in CANARY.findall(shown.encode()) if is_secret(path.decode())] == []
    assert {path for path in kept if is_secret(path)} == set()
    assert len({path for path in seen if is_secret(path)}) > 25
    assert {"Metadata.topics.name", "JoinGroup.groupId", "CreateAcls.creations.resourceName"} <= kept


RECORDS = sorted({(layout.api, version) for _, layout, version in CASES if layout.side == "record"})


def test_no_record_of_the_metadata_log_keeps_a_principal():
    seen = set()
    for api, version in RECORDS:
        layout = layout_of(api, "record", version)
        body = build(layout, version, Still(), filled(layout.fields, version, content, api)).data
        data = batch(entry(layout.key, body, version=version))
        seen |= {found.decode() for found in CANARY.findall(data)}
        kept = left(data, LogSecrets(principals=False).feed(data))
        assert [path for path in kept if is_secret(path)] == []
    assert len({path for path in seen if is_secret(path)}) >= 7
