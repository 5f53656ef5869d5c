"""Builds the documentation as a site: `python -m tools.site` (make site) writes build/site, for any web server.

Knows: Material for MkDocs, in an environment of its own (build/site-environment, by requirements.lock), and its
configuration. Refuses to know what the pages say (`tools/site_pages.py`).
Rule: a link that leads nowhere, or any other warning, is an error; the finished pages load nothing from elsewhere, and
no address of a project's is made up: those in `[project.urls]` of pyproject.toml are used, and there may be none.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tools import lock, site_pages

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
ENVIRONMENT, SOURCE, SITE = BUILD / "site-environment", BUILD / "site-source", BUILD / "site"
FROM_ELSEWHERE = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href|srcset)=\"?(?:https?:)?//[^>]*>")
DARK = {"scheme": "slate", "primary": "indigo"}
LIGHT = {"scheme": "default", "primary": "indigo"}


def settings(navigation: list[object], urls: dict[str, str]) -> dict[str, object]:
    """mkdocs.yml, whose YAML may as well be JSON."""
    found = {"site_url": urls.get("Documentation"), "repo_url": urls.get("Source")}
    return {
        "site_name": "wirecheck",
        **{name: url for name, url in found.items() if url},
        "docs_dir": str(SOURCE / "pages"),
        "site_dir": str(SITE),
        "nav": navigation,
        "theme": {
            "name": "material",
            "font": False,  # the reader's own: nothing is loaded from elsewhere
            "features": [
                "navigation.tabs",
                "navigation.top",
                "search.highlight",
                "search.suggest",
                "content.code.copy",
            ],
            "palette": [
                {"media": "(prefers-color-scheme: light)", **LIGHT, "toggle": toggle("brightness-7", "dark")},
                {"media": "(prefers-color-scheme: dark)", **DARK, "toggle": toggle("brightness-4", "light")},
            ],
        },
        "plugins": ["search"],
        "markdown_extensions": ["tables", "admonition", "pymdownx.superfences", {"toc": {"permalink": True}}],
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
            "links": dict.fromkeys(("not_found", "anchors", "absolute_links", "unrecognized_links"), "warn"),
        },
    }


def toggle(icon: str, other: str) -> dict[str, str]:
    return {"icon": f"material/{icon}", "name": f"Switch to {other} mode"}


def write_sources() -> None:
    shutil.rmtree(SOURCE, ignore_errors=True)
    pages = site_pages.pages()
    for path, text in pages.items():
        target = SOURCE / "pages" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for path in site_pages.files():
        target = SOURCE / "pages" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"].get("urls", {})
    (SOURCE / "mkdocs.yml").write_text(json.dumps(settings(site_pages.navigation(pages), urls), indent=1))


def environment() -> Path:
    """Its Python; made anew when the pins are newer."""
    made = ENVIRONMENT / "made"
    if not made.exists() or made.stat().st_mtime < lock.LOCK.stat().st_mtime:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        subprocess.run([ENVIRONMENT / "bin/python", lock.__file__, "site", "install", "--quiet"], check=True)
        made.touch()
    return ENVIRONMENT / "bin/python"


def from_elsewhere() -> list[str]:
    """What a browser would fetch from another host."""
    found = ((page, FROM_ELSEWHERE.findall(page.read_text("utf-8"))) for page in sorted(SITE.rglob("*.html")))
    return [f"{page.relative_to(SITE)}: {tag}" for page, tags in found for tag in tags if 'rel="canonical"' not in tag]


def main() -> int:
    write_sources()
    words = [environment(), "-m", "mkdocs", "build", "--strict", "--clean", "--config-file", SOURCE / "mkdocs.yml"]
    quiet = {"NO_MKDOCS_2_WARNING": "1"}  # about a version that is not the pinned one
    result = subprocess.run(words, check=False, env=os.environ | quiet, capture_output=True, text=True)
    if result.returncode:  # without --quiet, which would keep the warnings from --strict, too
        sys.stderr.write(result.stderr)
        return result.returncode
    if loaded := from_elsewhere():
        sys.stderr.write("\n".join(["pages that load something from elsewhere:", *loaded, ""]))
        return 1
    count = len([*SITE.rglob("*.html")])
    print(f"{count} pages in {SITE.relative_to(ROOT)}: python3 -m http.server -d {SITE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
