"""What was written under another name, to what it was: for the key file, and for who reads an answer to a report."""

from __future__ import annotations

import base64
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirecheck.capture.anonymize.names import Names


def shown_names(names: Names) -> dict[str, str]:
    """Names, IDs and addresses as wirecheck prints them, by what stands for them."""
    pairs = [(_text(new), _text(old)) for old, new in names.texts.items()]
    pairs += [(_id_text(new), _id_text(old)) for old, new in names.ids.items()]
    pairs += [(str(ip_address(new)), str(ip_address(old))) for old, new in names.addresses.items()]
    return {new: old for new, old in pairs if new != old}


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


def _id_text(content: bytes) -> str:
    """As Kafka prints it."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
