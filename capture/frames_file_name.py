"""What a file of frames is called, AGENT-NNNNNNNNNN.parquet: the agent, and the file's number among the agent's.

Names are made and read here only. Another source of frames gives its files such names.
"""

import re

NAME = re.compile(r"(?P<agent>.+)-(?P<seq>[0-9]{10})\.parquet")
FOREIGN_NUMBER = 1
"""The number of a file whose name has none: an agent of its own, ended with it."""


def file_name(agent: str, number: int) -> str:
    return f"{agent}-{number:010d}.parquet"


def hidden_name(name: str) -> str:
    """Of a file that is not whole yet: who reads frames overlooks it."""
    return f".{name}.tmp"


def shown_name(name: str) -> str:
    """The name that such a file gets when it is whole."""
    return name.removeprefix(".").removesuffix(".tmp")


def text_of(path: object) -> str:
    """A path as text; its bytes that are not UTF-8 written out, as no table could hold them."""
    return str(path).encode(errors="surrogateescape").decode(errors="backslashreplace")


def base_name(path: str) -> str:
    """The file's name, as text."""
    return text_of(path.rpartition("/")[2])


def whose(path: str) -> tuple[str, int] | None:
    """Agent and number; None of another name."""
    name = NAME.fullmatch(base_name(path))
    return (name["agent"], int(name["seq"])) if name else None
