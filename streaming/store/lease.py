"""One writer to a checkpoint on an object store: a lease, one small object that is replaced conditionally.

No clocks are compared. The holder renews the lease; a monitor that finds it unchanged for `stale_s` takes it over under
the next fencing number. It is renewed before each commit, and a monitor that finds another's lease commits nothing
more. After a PUT without an answer, the object says whose it is. Conditional PUTs are `obstore`'s (pyarrow has none).
"""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from wirecheck.streaming.store.storage import is_local

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import ObjectStore

NAME = ".lease.json"
EXTRA = "wirecheck[objectstore]"


Say = Callable[[str], None]
"""Prints a line for a person."""


class LeaseRefused(Exception):  # noqa: N818 - reads as what happened
    """Why it cannot be had, in one line with the way out."""


class LeaseLost(Exception):  # noqa: N818 - reads as what happened
    """This monitor commits nothing more; the message is why, in one line."""


class Found(NamedTuple):
    """The object as it was found."""

    content: dict[str, Any]
    version: "UpdateVersion"


@dataclass(frozen=True)
class LeaseTerms:
    """How long what takes."""

    renew_s: float = 5.0
    stale_s: float = 20.0
    patience_s: float = 60.0
    """A commit waits so long for a store that is away."""
    look_s: float = 1.0


@dataclass
class Lease:
    """Held by this process, from `taken_over` on."""

    store: "ObjectStore"
    checkpoint: str
    terms: LeaseTerms = LeaseTerms()
    holder: str = field(default_factory=lambda: f"{socket.gethostname()} process {os.getpid()}")
    token: str = field(default_factory=lambda: uuid4().hex)
    fence: int = 0
    """Greater than that of the former holder."""
    renewals: int = 0
    lost: bool = False
    """To another, for good."""

    def __post_init__(self) -> None:
        self._guard, self._ended = Lock(), Event()
        self._version: UpdateVersion | None = None
        self._thread = Thread(target=self._keep, name="lease", daemon=True)

    # --- to have it

    def take(self, say: Say) -> None:
        """Hold it. Raises LeaseRefused where another monitor does."""
        while not self.replace(self._replaceable(say)):
            pass
        self._thread.start()

    def replace(self, found: Found | None) -> bool:
        """Whether it is held now, under the next number."""
        return self._put(found.version, found.content["fence"] + 1) if found else self._put(None, 1)

    def _replaceable(self, say: Say) -> Found | None:
        """What to replace: nothing, a lease that was given back, or one that is not renewed."""
        lease = self._get()
        if lease is None or lease.content["released"]:
            return lease
        say(f"{self.checkpoint}: {lease.content['holder']} holds the lease; it is taken over if it is not renewed")
        until_s = time.monotonic() + self.terms.stale_s
        while time.monotonic() < until_s:
            time.sleep(self.terms.look_s)
            lease_now = self._get()
            if lease_now is None or lease_now.content["released"]:
                return lease_now
            if lease_now.version != lease.version:
                refusal = f"another monitor ({lease_now.content['holder']}) is using it; stop that one first"
                raise LeaseRefused(f"{self.checkpoint}: {refusal}")
        return lease

    def refuses_twice(self) -> bool:
        """Whether the store refuses to create what is there: on some a condition is a word they do not know."""
        from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

        try:
            self.store.put(NAME, self._content(), mode="create")
        except (AlreadyExistsError, PreconditionError):
            return True
        except (NotSupportedError, NotImplementedError):
            pass
        return False

    # --- to keep it

    def confirm(self) -> dict[str, int]:
        """Confirm that it is held now. Returns what a commit records of it. Raises LeaseLost."""
        until_s = time.monotonic() + self.terms.patience_s
        while time.monotonic() < until_s:
            with suppress(*unanswered()):
                self._renew()
                self.check()
                return {"fence": self.fence}
            time.sleep(self.terms.look_s)
        raise LeaseLost(f"{self.checkpoint}: its lease could not be renewed; nothing is committed without it")

    def check(self) -> None:
        """Raises LeaseLost where another is known to hold it."""
        if self.lost:
            raise LeaseLost(f"{self.checkpoint}: another monitor has taken it over; this one commits nothing more")

    def look(self) -> None:
        """The same, after the store was asked once."""
        with suppress(*unanswered()):
            self._renew()
        self.check()

    def give_back(self) -> None:
        """The next one needs not wait."""
        self._ended.set()
        self._thread.join()
        if not self.lost:
            with suppress(*unanswered()):
                self._renew(released=True)

    def _keep(self) -> None:
        while not self.lost and not self._ended.wait(self.terms.renew_s):
            with suppress(*unanswered()):  # tried again
                self._renew()

    def _renew(self, *, released: bool = False) -> None:
        with self._guard:
            if not self.lost and not self._put(self._version, self.fence, released=released):
                self.lost = True

    # --- the object

    def _content(self, *, released: bool = False) -> bytes:
        content = {"holder": self.holder, "token": self.token, "fence": self.fence, "renewals": self.renewals}
        return json.dumps({**content, "released": released}).encode()

    def _put(self, version: "UpdateVersion | None", fence: int, *, released: bool = False) -> bool:
        """Whether it stands there instead of that version. Raises what `unanswered` names where it is not known."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        self.fence, self.renewals = fence, self.renewals + 1
        try:
            done = self.store.put(NAME, self._content(released=released), mode="create" if version is None else version)
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            now = self._get()  # an earlier try may have got there without an answer
            if now is None or now.content["token"] != self.token:
                return False
            if now.content["renewals"] != self.renewals:  # an earlier renewal: this one is still to be made
                return self._put(now.version, fence, released=released)
            self._version = now.version
        else:
            self._version = version_of(done)
        return True

    def _get(self) -> Found | None:
        with suppress(FileNotFoundError):
            answer = self.store.get(NAME)
            meta, content = answer.meta, bytes(answer.bytes())
            return Found(json.loads(content), version_of(meta))
        return None


@contextmanager
def leased(checkpoint: str, say: Say, terms: LeaseTerms = LeaseTerms()) -> Iterator[Lease | None]:
    """Meanwhile, where the checkpoint is on an object store. Raises LeaseRefused.

    None if no lease is possible, which is logged: then users make sure that only one monitor runs.
    """
    store = store_of(checkpoint, say)
    if store is None:
        yield None
        return
    lease = Lease(store, checkpoint, terms)
    try:
        lease.take(say)
        safe = lease.refuses_twice()
    except unanswered() as wrong:
        reason = str(wrong).strip().splitlines()[0]
        raise LeaseRefused(f"{checkpoint}: no lease: {reason}; let this user read and write there") from wrong
    except (ValueError, KeyError, TypeError) as wrong:
        raise LeaseRefused(f"{checkpoint}: {NAME} is damaged; remove it if no monitor is running") from wrong
    if not safe:
        say(f"{checkpoint}: its store does not support conditional PUTs: {ALONE}")
    try:
        yield lease if safe else None
    finally:
        lease.give_back()


ALONE = "a second monitor is not prevented; make sure that only one runs"


def version_of(answer: Mapping[str, Any]) -> "UpdateVersion":
    """What a condition may name: `obstore` takes no None."""
    return {name: answer[name] for name in ("e_tag", "version") if answer.get(name) is not None}  # type: ignore[return-value]


def unanswered() -> tuple[type[Exception], ...]:
    """What `obstore` raises if the store is unreachable or denies access: some of them are Python's own."""
    from obstore.exceptions import BaseError

    return BaseError, OSError


def store_of(checkpoint: str, say: Say) -> "ObjectStore | None":
    """The folder, to `obstore`; None where there is no lease, and why not is printed."""
    if is_local(checkpoint):
        return None
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ModuleNotFoundError:
        say(f"{checkpoint}: no lease without {EXTRA}: {ALONE}")
        return None
    try:
        # an endpoint without TLS is one that was asked for, as pyarrow.fs sees it
        return from_url(
            "s3:" + checkpoint.partition(":")[2] if checkpoint.startswith("s3a:") else checkpoint,
            client_options={"timeout": "4s", "connect_timeout": "2s", "allow_http": True},
            retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=4)},
        )
    except BaseError:
        say(f"{checkpoint}: no lease on this file system: {ALONE}")
        return None
