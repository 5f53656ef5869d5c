"""A conversation inside TLS, made by OpenSSL (Python's ssl): its segments, and the key log of its handshake.

Knows: MemoryBIO, which versions and ciphers to offer. Refuses to know: anything of ours.
Rule: handshake, records, alerts and tickets are OpenSSL's own; nothing here is stored, every run has new keys.
"""

import ssl
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.traffic import Talk

VERSIONS = {"1.3": ssl.TLSVersion.TLSv1_3, "1.2": ssl.TLSVersion.TLSv1_2}


def certificate(folder: Path) -> Path:
    """Key and certificate in one file."""
    pem = folder / "broker.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-keyout", folder / "key.pem", "-out", folder / "crt.pem", "-days", "2", "-subj", "/CN=broker"]
    subprocess.run(words, check=True, capture_output=True)
    pem.write_bytes((folder / "key.pem").read_bytes() + (folder / "crt.pem").read_bytes())
    return pem


class End:
    def __init__(self, context: ssl.SSLContext, *, server: bool, session=None) -> None:
        self.inside, self.outside = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.inside, self.outside, server_side=server, session=session)

    def shake(self) -> None:
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()

    def read(self) -> bytes:
        found = b""
        try:
            while data := self.tls.read(1 << 16):
                found += data
        except ssl.SSLWantReadError:
            pass
        return found


@dataclass
class TlsTalk:
    """What a client and a server say, inside TLS; `talk` has the segments."""

    pem: Path
    key_log: Path
    version: str = "1.3"
    ciphers: str | None = None
    talk: Talk = field(default_factory=Talk)
    resumes: "TlsTalk | None" = None

    def open(self) -> "TlsTalk":
        if self.resumes is None:
            self._client, self._server = (
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
            )
            self._client.check_hostname, self._client.verify_mode = False, ssl.CERT_NONE
            self._server.load_cert_chain(self.pem)
            for context in (self._client, self._server):
                context.minimum_version = context.maximum_version = VERSIONS[self.version]
                if self.ciphers:
                    context.set_ciphers(self.ciphers)
        else:
            self._client, self._server = self.resumes._client, self.resumes._server
        self._client.keylog_filename = str(self.key_log)
        session = self.resumes.client.tls.session if self.resumes else None
        self.client = End(self._client, server=False, session=session)
        self.server = End(self._server, server=True)
        self.talk.open()
        for _ in range(6):
            self.client.shake()
            self._flush()
            self.server.shake()
            self._flush()
        return self

    def request(self, data: bytes) -> "TlsTalk":
        self.client.tls.write(data)
        self._flush()
        return self

    def response(self, data: bytes) -> "TlsTalk":
        self.server.tls.write(data)
        self._flush()
        return self

    def close(self) -> "TlsTalk":
        self.talk.close()
        return self

    def _flush(self) -> None:
        if data := self.client.outside.read():
            self.talk.request(data)
            self.server.inside.write(data)
        if data := self.server.outside.read():
            self.talk.response(data)
            self.client.inside.write(data)
        if self.client.tls.version() and self.server.tls.version():
            for end in (self.server, self.client):
                with suppress(ssl.SSLError):
                    end.read()

    @property
    def segments(self):
        return self.talk.segments
