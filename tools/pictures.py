"""Screenshots of the report for the README: `python -m tools.pictures` (make pictures).

Takes them of the example with the stale broker, by Chromium. Without Chromium it changes nothing and prints a line.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/pictures"
CAPTURE = "examples/kraft4-stale-broker/capture.pcap.gz"
CHROMIUM = shutil.which("chromium")
WINDOW = "1280,800"


def main() -> None:
    os.chdir(ROOT)  # the pictures show paths as somebody there would type them
    with tempfile.TemporaryDirectory(prefix="wirecheck-") as scratch:
        page = Path(scratch) / "report.html"
        replay = (sys.executable, "-m", "wirecheck", "replay", CAPTURE, "--fail-on", "never", "--report", str(page))
        subprocess.run(replay, check=True, capture_output=True)
        if CHROMIUM is None:
            sys.stderr.write("chromium is not installed: the pictures of the page stay as they were\n")
            return
        for name, more in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
            taken(page, PICTURES / f"report-{name}.png", Path(scratch) / "profile", *more)


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
