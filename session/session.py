"""How inputs are read, and who gets to know how far it is; and the one error of this package."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path


class InputError(ValueError):
    """Nothing could be read, or an argument is wrong; the message states what and why."""


class ArgumentError(InputError):
    """What was asked for makes no sense, whatever is in the inputs."""


Advance = Callable[[int, int], None]
"""Gets how much is done, and how much there is."""


def silent(_what: str) -> AbstractContextManager[Advance]:
    return nullcontext(lambda _done, _total: None)


@dataclass(frozen=True)
class Session:
    """Without arguments: nothing is decrypted but by what captures hold, and nothing is printed."""

    key_logs: tuple[Path, ...] = ()
    """Key logs of TLS in the NSS format."""
    dialects: tuple[str, ...] = ()
    """Drafts by whose layouts messages are read that no release has."""
    progress: Callable[[str], AbstractContextManager[Advance]] = silent
    """Gets what is done, and shows how far it is until it is left."""
    say: Callable[[str], None] = lambda _line: None
    """Gets a line for each thing that could not be read, and is not what everything rests on."""


def drafts(named: Iterable[str]) -> tuple[str, ...]:
    """Dialects without Kafka's own, which is always read, and each once."""
    return tuple(dict.fromkeys(dialect for dialect in named if dialect != "kafka"))
