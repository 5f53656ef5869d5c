"""Captures, folders of frames or results to the table of agreement: the rows of a run, beside its verdict on them."""

from typing import TYPE_CHECKING

from wirecheck.session.results import answers
from wirecheck.session.session import Session

if TYPE_CHECKING:
    from wirecheck.story.agreement import AgreementTable
    from wirecheck.story.seen import Coverage


def agreement(session: Session, inputs: tuple[str, ...], cluster: str) -> "tuple[AgreementTable, Coverage]":
    """Raises InputError where there is nothing of Kafka."""
    result = answers(session, inputs, None, cluster, agreement=True)
    return result.agreement(), result.coverage()
