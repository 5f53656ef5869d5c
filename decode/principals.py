"""Which fields hold a principal, or the address that one comes from: users, owners of tokens, who an ACL is about.

A field is one by its type, which Kafka's schemas do not state: by its name, the name of the field beside it, or that of
its message. What a quota or an ACL of a user is about counts whichever kind of entity or resource it is.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.program import programs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.layouts.form import Slot

NAMES = frozenset(
    {
        *("principal", "principalFilter", "principalName", "ownerPrincipalName", "tokenRequesterPrincipalName"),
        *("owner", "requester", "requestPrincipal", "clientHostAddress", "entityName", "user"),
    }
)
BESIDE = {"host": "principal", "hostFilter": "principalFilter", "match": "entityType"}
"""Fields that are one where the second field is beside them."""
OF_USERS = frozenset({"users.name", "deletions.name", "upsertions.name", "renewers.value"})


def is_principal(name: str, siblings: object, label: str) -> bool:
    """Of a text or of bytes: its name, the names beside it, and its dotted path."""
    beside = BESIDE.get(name)
    return name in NAMES or label in OF_USERS or (beside is not None and beside in siblings)  # type: ignore[operator]


@cache
def principal_slots() -> NDArray[np.bool_]:
    """By slot."""
    return np.array([_is_one(slot) for slot in programs().slots])


def _is_one(slot: Slot) -> bool:
    if slot.kind not in {Kind.TEXT, Kind.BYTES} or slot.parent is None:
        return False
    siblings = slot.parent.children
    credential = slot.name == "name" and "mechanism" in siblings and not slot.parent.label  # of the metadata log
    return credential or is_principal(slot.name, siblings, slot.label)
