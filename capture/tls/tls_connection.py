"""One TLS connection: its handshake, and the keys of its records.

It is open once a tag proved one of its records. Until then nothing of it is changed; if its keys fail it stays
encrypted, with a reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirecheck.capture.tls import cipher_suites, hello
from wirecheck.capture.tls.joining import JOINED_NUMBERS, SUITES, Budget, Joining
from wirecheck.capture.tls.key_log import CLIENT_RANDOM, EARLY, HANDSHAKE, NO_KEY, TRAFFIC
from wirecheck.capture.tls.record_keys import Tls13Key, tls12_keys
from wirecheck.capture.tls.records import MOST_NUMBERS, RecordStream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wirecheck.capture.tls.cipher_suites import Suite
    from wirecheck.capture.tls.hello import Hello
    from wirecheck.capture.tls.key_log import Secrets
    from wirecheck.capture.tls.record_keys import RecordKey

MOST_FAILED = 16
"""Records that did not open, before any did: then the key is another connection's."""
MOST_SESSIONS = 100_000
ALERT_BYTES = 40
"""A server that sends no more has refused the handshake."""
NO_HELLO = "its handshake was not seen"
NO_NUMBER = f"its handshake was not seen, and no key opens its records up to number {MOST_NUMBERS:,}"
WRONG_KEY = "the key log's keys do not open it"
TOO_OLD = "its TLS is older than 1.2"


class Sessions:
    """Master secrets of TLS 1.2 by session id and ticket: what a resumed handshake goes on with."""

    def __init__(self) -> None:
        self._masters: dict[bytes, bytes] = {}

    def keep(self, name: bytes, master: bytes) -> None:
        if name:
            self._masters.pop(name, None)
            self._masters[name] = master
            if len(self._masters) > MOST_SESSIONS:
                del self._masters[next(iter(self._masters))]

    def of(self, name: bytes) -> bytes | None:
        return self._masters.get(name) if name else None


class TlsConnection:
    """Two directions by the follower's sides, 0 and 1."""

    def __init__(self, secrets: Secrets, sessions: Sessions, budget: Budget) -> None:
        self.failure = ""
        """Why it stays encrypted, once that is known."""
        self.foreign = False
        """It is no TLS."""
        self.waits_for_key = False
        """Both hellos are there, and the key log that has its secrets may still be written."""
        self._tried_at_line = -1
        self._did_without = False
        self._secrets, self._sessions = secrets, sessions
        self.streams: list[RecordStream | None] = [None, None]
        """By side, where bytes of it were seen."""
        self.is_joining = False
        """It may be TLS that is older than the capture; what opens it is looked for."""
        self.key_updates = 0
        """How many came before what was seen, where it is older than the capture (RFC 8446 4.6.3)."""
        self._joining: Joining | None = Joining(secrets, budget)
        self._other: tuple[Tls13Key, int, int] | None = None  # of the direction that was not seen yet
        self._messages = (hello.Messages(), hello.Messages())
        self._client = -1
        self._asked: Hello | None = None
        self._answered: Hello | None = None
        self._master: bytes | None = None

    @property
    def is_open(self) -> bool:
        return any(stream.opened for stream in self._seen())

    def _seen(self) -> list[RecordStream]:
        return [stream for stream in self.streams if stream is not None]

    def feed(self, side: int, begin: int, end: int, data: bytes | None) -> None:
        """What is next on the wire, as the follower has put it in order; None was not seen."""
        stream = self.streams[side]
        if stream is None:
            stream = self.streams[side] = RecordStream(begin)
            stream.on_handshake = self._reader_of(side)
            if self._other is not None:
                stream.join(*self._other)
        if self._joining is not None:
            self._joining.see(side, data)
        stream.feed(begin, end, data)

    def run(self) -> None:
        """Process both directions as far as possible: one may wait for a message of the other."""
        if self.waits_for_key and self._tried_at_line != self._secrets.lines:
            self._agree()
        moved = True
        while moved:
            moved = False
            for side in (self._client, 1 - self._client) if self._client >= 0 else (0, 1):
                stream = self.streams[side]
                moved = (stream is not None and stream.run()) or moved
        if self.is_open or self.failure or self.foreign:
            self.is_joining, self._joining = False, None
            return
        streams = self._seen()
        unseen = self._asked is None and self._answered is None
        if unseen and any(stream.strange or stream.headless for stream in streams):
            self._join()
        elif any(stream.headless for stream in streams):
            self._fail(NO_HELLO)
        elif any(stream.failed >= MOST_FAILED for stream in streams):
            self._fail(WRONG_KEY)

    def _join(self) -> None:
        """Its beginning was not seen."""
        assert self._joining is not None
        trial = self._joining.find()
        self.is_joining = trial is None and not self._joining.is_hopeless
        if trial is not None:
            self._client = trial.side if trial.of_client else 1 - trial.side
            self._secrets.claimed.add(trial.random)
            self.key_updates = trial.updates
            mine, other = self.streams[trial.side], self.streams[1 - trial.side]
            assert mine is not None
            mine.join(trial.key, trial.number, trial.number + JOINED_NUMBERS)
            self._other = self._joining.other(trial)
            if other is not None and self._other is not None:
                other.join(*self._other)
            self.run()
        elif not self.is_joining:
            self._cannot_join()

    def _cannot_join(self) -> None:
        if not any(stream.headless for stream in self._seen()):
            self.foreign = True
        else:
            self._fail(NO_NUMBER if self._joining is not None and self._joining.tried else NO_HELLO)

    def stop_waiting_for_key(self) -> None:
        """With the secrets that are there, or none."""
        if self.waits_for_key:
            self.waits_for_key = False
            self._agree(to_the_last=True)
            self.run()

    def do_without_hello(self) -> bool:
        """One hello was lost: of TLS 1.3 the other is enough. Whether that opens it; asked once."""
        asked, answered = self._asked, self._answered
        if self._did_without or self.failure or self.foreign or None in self.streams or self._joining is None:
            return False
        self._did_without = True
        if asked is not None and answered is None:
            found = self._secrets.of(asked.random)
            lengths = {len(found.get(label, b"")) for label in (*HANDSHAKE, *TRAFFIC)}
            suites = [cipher_suites.TLS_1_3[suite] for length in lengths for suite in SUITES.get(length, ())]
        elif asked is None and answered is not None and answered.suite in cipher_suites.TLS_1_3:
            suites = [cipher_suites.TLS_1_3[answered.suite]]
            random = self._joining.of_handshake(1 - self._client, suites[0], HANDSHAKE[1])
            found = self._secrets.of(random) if random is not None else {}
        else:
            return False
        for side, labels in (
            (self._client, (HANDSHAKE[0], TRAFFIC[0])),
            (1 - self._client, (HANDSHAKE[1], TRAFFIC[1])),
        ):
            self._give(side, [Tls13Key(suite, found[label]) for label in labels for suite in suites if label in found])
        self.run()
        return self.is_open

    def end(self) -> None:
        """Nothing more comes, or is waited for: whatever is not plain by now will not be."""
        self.stop_waiting_for_key()
        self.do_without_hello()
        for stream in self._seen():
            stream.give_up(stream.end)
        if not self._seen() or self._was_given_up():
            self.foreign = True
        elif self.is_joining:
            self._cannot_join()
        if not self.is_open and not self.foreign:
            failed = any(stream.failed for stream in self._seen())
            self._fail(WRONG_KEY if failed else NO_HELLO)

    def _was_given_up(self) -> bool:
        """Whether the server did not answer the client's hello, except by an alert: there is nothing to open."""
        if self._asked is None or self._answered is not None or self.is_open:
            return False
        server = self.streams[1 - self._client]
        return server is None or server.size <= ALERT_BYTES

    def _fail(self, why: str) -> None:
        self.failure = self.failure or why

    # --- the handshake

    def _reader_of(self, side: int) -> Callable[[bytes], None]:
        def read(content: bytes) -> None:
            try:
                for kind, body in self._messages[side].read(content):
                    self._on_message(side, kind, body)
            except hello.LyingError:
                self._fail(NO_HELLO)

        return read

    def _on_message(self, side: int, kind: int, body: bytes) -> None:
        if kind == hello.CLIENT_HELLO:
            self._client, self._asked = side, hello.client_hello(body)
            if self._answered is not None and not any(stream.numbers.keys for stream in self._seen()):
                self._agree()  # the answer was read first
        elif kind == hello.SERVER_HELLO:
            answered = hello.server_hello(body)
            if answered.random != hello.RETRY:
                self._client, self._answered = 1 - side, answered
                self._agree()
        elif self._answered is not None and self._answered.version == hello.TLS_1_2 and self._master is not None:
            self._sessions.keep(hello.session_ticket(body), self._master)

    def _agree(self, *, to_the_last: bool = False) -> None:
        """Both hellos are there: keys, or why there are none; while they may still be written, some are not enough."""
        asked, answered = self._asked, self._answered
        if asked is None or answered is None:
            return
        self._tried_at_line = self._secrets.lines
        self.waits_for_key = False
        if answered.version not in {hello.TLS_1_2, hello.TLS_1_3}:
            self._fail(TOO_OLD)
            return
        suites = cipher_suites.TLS_1_3 if answered.version == hello.TLS_1_3 else cipher_suites.TLS_1_2
        suite = suites.get(answered.suite)
        if suite is None:
            self._fail(f"its cipher suite 0x{answered.suite:04x} is not read")
        elif answered.version == hello.TLS_1_3:
            self._use_1_3(suite, asked, may_wait=self._secrets.growing and not to_the_last)
        else:
            self._use_1_2(suite, asked, answered, may_wait=self._secrets.growing and not to_the_last)

    def _use_1_3(self, suite: Suite, asked: Hello, *, may_wait: bool) -> None:
        found = self._secrets.of(asked.random)
        if may_wait and not found.keys() >= {*HANDSHAKE, *TRAFFIC}:
            self.waits_for_key = True
            return
        early = (EARLY,) if hello.EARLY_DATA in asked.extensions else ()
        client, server = (*early, HANDSHAKE[0], TRAFFIC[0]), (HANDSHAKE[1], TRAFFIC[1])
        for side, labels in ((self._client, client), (1 - self._client, server)):
            keys = [Tls13Key(suite, found[label]) for label in labels if len(found.get(label, b"")) == suite.prf_bytes]
            self._give(side, keys)
        if not any(stream.numbers.keys for stream in self._seen()):
            self._fail(NO_KEY)

    def _use_1_2(self, suite: Suite, asked: Hello, answered: Hello, *, may_wait: bool) -> None:
        ticket = asked.extensions.get(hello.SESSION_TICKET, b"")
        resumed = answered.session and answered.session == asked.session
        self._master = self._secrets.of(asked.random).get(CLIENT_RANDOM) or self._secrets.masters.get(answered.session)
        if self._master is None and resumed:
            self._master = self._sessions.of(answered.session) or self._sessions.of(ticket)
        if self._master is None and ticket:
            self._master = self._sessions.of(ticket)
        if self._master is None:
            self.waits_for_key = may_wait
            if not may_wait:
                self._fail(NO_KEY)
            return
        self._sessions.keep(answered.session, self._master)
        mac_outside = hello.ENCRYPT_THEN_MAC in answered.extensions
        keys = tls12_keys(suite, self._master, (asked.random, answered.random), mac_outside=mac_outside)
        self._give(self._client, [keys[0]])
        self._give(1 - self._client, [keys[1]])

    def _give(self, side: int, keys: Sequence[RecordKey]) -> None:
        stream = self.streams[side]
        assert stream is not None
        if stream.numbers.keys:  # renegotiated
            for key in keys:
                stream.follow_with(key)
        else:
            stream.use(keys)
