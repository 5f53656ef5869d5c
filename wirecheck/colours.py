"""Colours of text on a terminal that can be read on black and on white.

Knows: numbers of the 256 colours, the same on every terminal, unlike the names of the first 16. Does not know what is
shown in which.
Rule: at least 3.8:1 against both, by WCAG 2's formula; no text is coloured and dim. Meaning never depends on colour.
"""

RED, AMBER, GREEN, TEAL, PURPLE = 160, 130, 28, 30, 164
KINDS = {"violation": RED, "anomaly": AMBER, "information": TEAL, "visibility": PURPLE}
"""Of findings."""


def shade(colour: int, *, bold: bool = False) -> str:
    """As Rich names it."""
    return f"{'bold ' if bold else ''}color({colour})"


KIND_STYLES = {kind: shade(colour, bold=kind == "violation") for kind, colour in KINDS.items()}
