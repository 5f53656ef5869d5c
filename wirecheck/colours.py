"""Colours that can be read on black and on white: at least 3.8:1 against both, by WCAG 2's formula.

They are numbers of the 256 colours, the same on every terminal. Meaning never depends on colour.
"""

RED, AMBER, GREEN, TEAL, PURPLE = 160, 130, 28, 30, 164
KINDS = {"violation": RED, "anomaly": AMBER, "information": TEAL, "visibility": PURPLE}
"""Of findings."""


def shade(colour: int, *, bold: bool = False) -> str:
    """As Rich names it."""
    return f"{'bold ' if bold else ''}color({colour})"


KIND_STYLES = {kind: shade(colour, bold=kind == "violation") for kind, colour in KINDS.items()}
