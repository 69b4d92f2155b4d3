"""No link of a page is dead, and every picture has words for those who do not see it."""

import re

import pytest
from documents.links import anchors, dead, links
from documents.pages import DOCS, ROOT
from pictures import LARGEST_BYTES

_PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)

_FOLDERS = [ROOT / name for name in ("docs", "examples", "integrations", "reusable_holdout", "tests")]
_THERE = [*ROOT.glob("*.*"), *_FOLDERS, *(path for folder in _FOLDERS for path in folder.rglob("*"))]


@pytest.mark.parametrize("page", _PAGES)
def test_no_relative_link_is_dead(page):
    assert dead(ROOT / page) == []


@pytest.mark.parametrize("page", _PAGES)
def test_every_picture_says_what_is_seen(page):
    pictures = [link for link in links((ROOT / page).read_text()) if link.image]
    assert [link.target for link in pictures if len(link.words.split()) < 4] == []


def test_pictures_are_small_and_each_is_on_a_page():
    pictures = sorted((DOCS / "images").iterdir())
    assert [picture.name for picture in pictures if picture.stat().st_size > LARGEST_BYTES] == []
    shown = {link.target for page in _PAGES for link in links((ROOT / page).read_text()) if link.image}
    named = {target.rpartition("/")[2] for target in shown}
    assert [picture.name for picture in pictures if picture.name not in named] == []


@pytest.mark.parametrize("page", ["AGENTS.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_file_and_folder_that_is_named_is_there(page):
    named = set(re.findall(r"`([a-z_][\w./-]*(?:\.(?:py|md|toml|css)|/))`", (ROOT / page).read_text()))
    there = {str(path.relative_to(ROOT)) + "/" * path.is_dir() for path in _THERE}
    assert [
        name for name in sorted(named) if not any(f"/{path}".endswith(f"/{name}") for path in there)
    ] == []


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "there.md").write_text(
        "# A `name`, and [a link](x.md)\n\n```\n# no heading [no](link.md)\n```\n## Two\n## Two\n"
    )
    page = tmp_path / "page.md"
    good = ["there.md", "there.md#a-name-and-a-link", "there.md#two-1", "https://example.org"]
    bad = ["gone.md", "there.md#no-heading", "#nothing"]
    page.write_text("".join(f"[words]({one})\n" for one in [*good, *bad]))
    assert dead(page) == bad
    assert anchors((tmp_path / "there.md").read_text()) == {"a-name-and-a-link", "two", "two-1"}
    assert [link.words for link in links("![a `picture`\nof it](x.png)")] == ["a code\nof it"]
