"""Captures and folders of frames to the table of agreement: the judge's statements, beside the verdict on them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wirecheck.session.local_check import checked
from wirecheck.session.results import busy, say_unread
from wirecheck.session.session import Session

if TYPE_CHECKING:
    from wirecheck.judge.judge import Judge
    from wirecheck.judge.results.agreement_rows import ApiVersions, TopicStatement
    from wirecheck.story.agreement import AgreementTable
    from wirecheck.story.seen import Coverage


def agreement(session: Session, inputs: Sequence[str], cluster: str) -> "tuple[AgreementTable, Coverage]":
    """Raises InputError where there is nothing of Kafka."""
    from wirecheck.judge.results.agreement_rows import api_versions, topic_statements
    from wirecheck.story.agreement import agreement_table
    from wirecheck.streaming.steps.settings import Settings

    topics: list[TopicStatement] = []
    apis: list[ApiVersions] = []

    def read(judge: "Judge") -> None:
        context = judge.context()
        topics.extend(topic_statements(context))
        apis.extend(api_versions(context))

    run, _, ports = checked(session, inputs, cluster, Settings(dialects=session.dialects), read)
    result = run.result()
    say_unread(session, result, busy(result, lambda: ports))
    topics.sort(key=lambda one: (one.cluster, one.topic or "", one.topic is None, one.first_ns, one.party, one.api))
    return agreement_table(result.verdict(), topics, apis), result.coverage()
