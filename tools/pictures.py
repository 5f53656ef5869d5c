"""The pictures of the README, made of what the commands say today: `python -m tools.pictures` (make pictures).

Knows: the example whose story the README tells, that rich can write a terminal as SVG, and that a browser takes a
picture of a page. Refuses to draw: the architecture is kept by hand (docs/pictures/architecture.svg).
Rule: nothing is retouched. Without Chromium the pictures of the page stay as they were, and a line says so.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from wirecheck.commands import inputs, replay
from wirecheck.commands.screen import legible
from wirecheck.dashboards import terminal, verdict
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.store.run_result import LISTINGS

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/pictures"
CAPTURE = "examples/kraft4-stale-broker/capture.pcap.gz"
CHROMIUM = shutil.which("chromium")
WINDOW = "1280,800"
SHOWN_LINES = 34
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""rich names a font on the web; the picture loads nothing."""


def main() -> None:
    os.chdir(ROOT)  # the pictures show paths as somebody there would type them
    with tempfile.TemporaryDirectory(prefix="wirecheck-") as scratch:
        frames = Path(scratch) / "frames"
        inputs.write_frames([Path(CAPTURE)], frames, "default", keep_records=False)
        files = sorted(frames.glob("*.parquet"))
        found = inputs.judged_files(files, Settings()).result()
        result = found.json() | replay.about((CAPTURE,)) | {"captured": replay.captured_of(files)}
        result |= {"verdict": verdict.sentence(result), "engine": "local"}
        (PICTURES / "verdict.svg").write_text(terminal_picture(result))
        page = Path(scratch) / "report.html"
        page.write_text(
            replay.page_of(result | replay.for_programs(result, (CAPTURE,)), found, replay.shown_of(found, files))
        )
        if CHROMIUM is None:
            sys.stderr.write("chromium is not installed: the pictures of the page stay as they were\n")
            return
        for name, more in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
            taken(page, PICTURES / f"report-{name}.png", Path(scratch) / "profile", *more)


def terminal_picture(result: dict[str, object]) -> str:
    """What a terminal of 110 columns shows first."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device
        console = Console(width=110, record=True, force_terminal=True, color_system="truecolor", file=nowhere)
        terminal.show(legible(result), console, LISTINGS)
        lines = console.export_text(styles=True).splitlines()[:SHOWN_LINES]
        for line in lines:
            console.print(Text.from_ansi(line), soft_wrap=True)
        title = "wirecheck replay capture.pcap.gz"
        return FONTS.sub("", console.export_svg(title=title, theme=DIMMED_MONOKAI, unique_id="verdict"))


def taken(page: Path, place: Path, profile: Path, *more: str) -> None:
    words = (CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}")
    subprocess.run(
        [*map(str, words), *more, f"--window-size={WINDOW}", f"--screenshot={place}", page.as_uri()],
        check=True,
        capture_output=True,
        timeout=120,
    )


if __name__ == "__main__":
    main()
