"""The pages must name what the code names, and their links must lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_environment_page_lists_the_settings_table():
    """Name, alias and bounds of every row of the table in config.cc are on its page."""
    page = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    code = (ROOT / "core" / "config.cc").read_text(encoding="utf-8")
    rows = re.findall(r'\{\{"(FASTHOROVOD_\w+)",\s*"(\w*)"', code)
    assert len(rows) >= 16
    in_table = set(re.findall(r"^\| `(FASTHOROVOD_\w+)`", page, re.MULTILINE))
    assert in_table == {name for name, _ in rows}
    for name, alias in rows:
        same = alias == name.replace("FASTHOROVOD_", "HOROVOD_")
        assert not alias or alias in page or (same and f"`{name}` (same with" in page), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_in_code_style_exist(page):
    """`folder/file.ext` in a page is a file of the tree."""
    text = page.read_text(encoding="utf-8")
    folders = "core|transport|compression|ops|torch_binding|tools|docs|test|bench"
    for path in re.findall(rf"`((?:{folders})/[\w./-]+\.\w+)`", text):
        assert (ROOT / path).exists(), f"{page.name} names {path}"
