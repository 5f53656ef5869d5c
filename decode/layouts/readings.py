"""What is read how: every layout of every version, in every dialect that has its own.

Knows the files of decode/schemas and how a draft is read: as flexible, by its letter, inline. Refuses to know bytes.
Rule: a dialect lists only what differs from the shipped layouts; whoever reads in it takes the rest from Kafka's.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from wirecheck.decode.layouts.layout import NEVER, Field, Layout, layouts

if TYPE_CHECKING:
    from collections.abc import Iterator


class Dialect(IntEnum):
    """Which layouts a message is read by."""

    KAFKA = 0
    """What Kafka's releases put on the wire; of a version changed in place, its last layout."""
    KAFKA_CHANGED = 1
    """The layout before the last change in place."""
    KAFKA_CHANGED_TWICE = 2
    """The layout before the change before that."""
    KIP516_DRAFT = 3
    """KIP-516 as drafted: its versions are flexible, its starred fields tagged."""
    KIP516_DRAFT_LITERAL = 4
    """The same, UpdateMetadata with the fields of all versions that its listing shows."""
    KIP516_DRAFT_INLINE = 5
    """The drafts by the letter: inflexible, every field where it stands."""
    KIP4_DRAFT = 6
    """CreateTopicRequest of KIP-4's earliest draft, as CreateTopics v0; its next draft is what shipped."""

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


def readings() -> Iterator[tuple[Dialect, Layout, int]]:
    """Dialect, layout and version of all there is."""
    for name in ("kafka", "metadata_records", "other"):
        for layout in layouts(name):
            if layout.side != "header":
                yield from ((Dialect.KAFKA, layout, version) for version in layout.versions)
                yield from _changed(layout)
    for layout in layouts("kip516_draft"):
        version = layout.versions.low
        yield Dialect.KIP516_DRAFT, layout._replace(fields=_implied(layout.fields)), version
        if _implied(layout.fields) != layout.fields:
            yield Dialect.KIP516_DRAFT_LITERAL, layout, version
        yield Dialect.KIP516_DRAFT_INLINE, layout._replace(fields=_inline(layout.fields), flexible=NEVER), version
    for layout in layouts("kip4_draft"):
        yield Dialect.KIP4_DRAFT, layout, layout.versions.low


def _implied(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(field._replace(fields=_implied(field.fields)) for field in fields if not field.literal)


def _inline(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(field._replace(tag=None, fields=_inline(field.fields)) for field in fields)


def _changed(layout: Layout) -> Iterator[tuple[Dialect, Layout, int]]:
    for dialect, changed in zip(
        (Dialect.KAFKA_CHANGED, Dialect.KAFKA_CHANGED_TWICE), layout.changed[::-1], strict=False
    ):
        flexible = changed.versions if changed.flexible else NEVER
        former = layout._replace(versions=changed.versions, flexible=flexible, fields=changed.fields, changed=())
        yield from ((dialect, former, version) for version in changed.versions)
