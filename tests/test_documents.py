"""Links in documents lead somewhere: every anchor exists, and every page is part of the website."""

import os
import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]


def without_code(page: str) -> str:
    text = (ROOT / page).read_text()
    return re.sub(r"^(```.*?^```|    [^\n]*)$", "", text, flags=re.MULTILINE | re.DOTALL if "```" in text else re.MULTILINE)


def anchors(page: str) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub and mdBook name them."""
    found: dict[str, int] = {}
    result = set()
    for heading in re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        kept = "".join(c for c in heading.lower() if c in " -_" or unicodedata.category(c)[0] in "LN")
        anchor = kept.strip().replace(" ", "-")
        result.add(f"{anchor}-{found[anchor]}" if anchor in found else anchor)
        found[anchor] = found.get(anchor, 0) + 1
    return result


@pytest.mark.parametrize("page", PAGES)
def test_every_anchor_exists(page):
    folder = Path(page).parent
    missing = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        path, _, anchor = target.partition("#")
        if anchor and "://" not in target:
            other = os.path.normpath(folder / path) if path else page
            if not (ROOT / other).is_file() or anchor not in anchors(other):
                missing.append(target)
    assert not missing


def test_every_page_is_part_of_the_website():
    links = re.findall(r"\]\(([^)]+\.md)\)", (ROOT / "docs/SUMMARY.md").read_text())
    listed = [os.path.normpath(Path("docs") / link) for link in links]
    assert sorted(listed) == sorted(page for page in PAGES if page != "docs/SUMMARY.md")
