"""The cards of a verdict as rows: the words of the terminal, for programs, tickets and the table of cards.

Rule: nothing is worded here. A row has what the card's lines say (`story/cards.py`), in their order.
"""

from typing import Any

from wirecheck.dashboards.verdict import blamed, mood_of
from wirecheck.story.cards import below, clients_seen
from wirecheck.story.verdict import Card, CardEntry, ListedCard, Verdict

Row = dict[str, Any]


def listed_cards(result: Verdict) -> tuple[ListedCard, ...]:
    """Of all entries that need a look, in their order."""
    clients = clients_seen(result.clients)
    return tuple(listed_card(entry, clients[entry.cluster]) for entry in blamed(result))


def listed_card(entry: CardEntry, clients: int) -> ListedCard:
    """`clients`: how many of its cluster were seen at all."""
    card, lines = entry.card, list(below(entry.card, clients))
    hurt = card.harm.clients

    def text(label: str) -> str:
        return next((words for name, words in lines if name == label), "")

    return ListedCard(
        id=entry.findings[0],
        code=entry.code,
        mark=mood_of(entry),
        cluster=entry.cluster,
        headline=card.headline,
        since_ns=since_ns(card),
        until_ns=until_ns(card),
        ongoing=any(one.ongoing for one in hurt) if hurt else None,
        cause=card.cause.sentence,
        impact=text("impact"),
        just_before=card.just_before,
        since_then=card.since_then,
        fix=card.action.sentence,
        look=card.action.commands,
        evidence=card.evidence.command,
        clients=tuple(dict.fromkeys(one.client_id or "" for one in hurt)),
        findings=tuple(entry.finding_ids),
    )


def since_ns(card: Card) -> int:
    """As the screen has it: of the harm, else of the cause."""
    harm = card.harm
    return min((one.first_ns for one in (harm.clients or harm.partitions)), default=card.cause.time_ns)


def until_ns(card: Card) -> int | None:
    """None while a client is still refused, or where it is not known that it is over."""
    clients, partitions = card.harm.clients, card.harm.partitions
    if clients:
        return None if any(one.ongoing for one in clients) else max(one.last_ns for one in clients)
    ends = [one.until_ns for one in partitions if one.until_ns]
    return max(ends) if ends and len(ends) == len(partitions) else None


def card_rows(result: Verdict) -> list[Row]:
    """Rows of the table `cards`, by its columns."""
    labels = {one.id: one.label for one in result.findings}
    return [row_of(one, labels.get(one.id, "")) for one in result.cards]


def row_of(card: ListedCard, label: str) -> Row:
    same = ("id", "code", "mark", "cluster", "headline", "ongoing", "cause", "impact", "fix", "evidence")
    row: Row = {name: getattr(card, name) for name in same}
    lists = {name: list(getattr(card, name)) for name in ("just_before", "since_then", "look", "clients", "findings")}
    return {**row, **lists, "revision": 0, "label": label, "since": card.since_ns, "until": card.until_ns}
