"""Coloured text can be read on a black terminal and on a white one."""

import re
from pathlib import Path

import pytest

from wirecheck import colours

LEVELS = (0, 95, 135, 175, 215, 255)
NAMED = ("AMBER", "GREEN", "PURPLE", "RED", "TEAL")


def luminance(colour):
    """WCAG 2's, of one of the cube of 256 colours."""
    parts = (LEVELS[(colour - 16) // 36], LEVELS[(colour - 16) // 6 % 6], LEVELS[(colour - 16) % 6])
    linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * value for share, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("name", NAMED)
def test_a_colour_is_readable_on_black_and_on_white(name):
    light = luminance(getattr(colours, name))
    assert 1.05 / (light + 0.05) >= 3.8
    assert (light + 0.05) / 0.05 >= 3.8


def test_no_other_colours_are_used():
    root = Path(colours.__file__).resolve().parents[1]
    texts = {path: path.read_text() for folder in ("commands", "dashboards") for path in (root / folder).glob("*.py")}
    named = re.compile(r"""(?:style|fg)=?.*["' ](?:bright_)?(?:red|yellow|green|cyan|magenta|blue|white|black)["' ]""")
    assert len(texts) > 30
    assert [(path.name, line) for path, text in texts.items() for line in text.splitlines() if named.search(line)] == []
    assert {*colours.KINDS.values()} <= {getattr(colours, name) for name in NAMED}
