"""How urgent harm is: what an alert about hurt clients says, and how loud it is.

Rule: harm that is over raises no alert. Of harm that goes on, it is critical if it hits two clients or more, if brokers
cause it, or if the client was served before; one client that never was may only be set up wrongly. What it says has no
counts and no times, so that it stays the same while the harm does.
"""

from collections.abc import Iterable, Mapping

from wirecheck.story.cards import does_not, listed, who
from wirecheck.story.verdict import CardEntry, Finding, HurtClient

CRITICAL, WARNING = "critical", "warning"
SEVERAL = 2


def ongoing(entry: CardEntry) -> list[HurtClient]:
    """The harm of an entry that goes on, the worst first."""
    return [one for one in entry.card.harm.clients if one.ongoing]


def severity(entry: CardEntry, findings: Mapping[str, Finding]) -> str | None:
    """None where no client is hurt now, or that is expected. `findings`: by ID."""
    hurt = ongoing(entry)
    if not hurt or entry.expected:
        return None
    root = findings[entry.findings[0]]
    by_brokers = bool(root.brokers) and not root.client_ids
    served = any(one.granted_before for one in hurt)
    return CRITICAL if by_brokers or served or len({one.client for one in hurt}) >= SEVERAL else WARNING


def label(entry: CardEntry) -> str:
    """The headline of a card as a label of a metric: who cannot do what; of a card without harm its headline."""
    clients = entry.card.harm.clients
    return f"{who(*clients[0].client)} {does_not(clients[0], counted=False)}" if clients else entry.card.headline


def names(entry: CardEntry) -> str:
    """The hurt clients of a card: at most three by name."""
    return listed(list(dict.fromkeys(one.client_id or "(no client ID)" for one in entry.card.harm.clients)))


def affected(
    entries: Iterable[CardEntry], findings: Mapping[str, Finding]
) -> dict[str, set[tuple[str | None, str | None]]]:
    """By severity the clients that are hurt now; one that is of both counts as critical."""
    found: dict[str, set[tuple[str | None, str | None]]] = {CRITICAL: set(), WARNING: set()}
    for entry in entries:
        if (loud := severity(entry, findings)) is not None:
            found[loud].update(one.client for one in ongoing(entry))
    found[WARNING] -= found[CRITICAL]
    return found
