"""Links between fetched pages: relative if the file exists, else unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_kb.references.fetch.create import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.sources.records import CrawlSource, WebSource
from llm_kb.references.topic.staging import PageLinks
from llm_kb.references.topic.topic_directory import FileRecord
from tests.references.requests import differences, files_of, never, request, yes
from tests.references.sites import Site

PAGES = {
    "h/index.md": "https://e.org/d/",
    "h/a.md": "https://e.org/d/a.html",
    "h/api/b-c.md": "https://e.org/d/api/b_(c)",
}
A = "[a](https://e.org/d/a.html)"


@pytest.fixture
def links(tmp_path: Path) -> PageLinks:
    """Three pages, one of which has headings, and a file of a repository."""
    (tmp_path / "h").mkdir()
    (tmp_path / "h/a.md").write_text("# A\n\n## Set up\n")
    files = {path: FileRecord(source=0, url=url) for path, url in PAGES.items()}
    files["README.md"] = FileRecord(source=1, url="https://e.org/repo", commit="1")
    return PageLinks(tmp_path, files)


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        (A, "[a](../a.md)"),
        ("[a](https://e.org/d/a.html#Set-up)!", "[a](../a.md#Set-up)!"),
        ("[a](https://e.org/d/a.html#id17)", "[a](../a.md)"),
        ("[](https://e.org/d/index.html), [](https://e.org/d)", "[](../index.md), [](../index.md)"),
        ("[b](https://e.org/d/api/b_(c))", "[b](b-c.md)"),
        ("[x](https://e.org/d/x.html)", "[x](https://e.org/d/x.html)"),
        ("[r](https://e.org/repo)", "[r](https://e.org/repo)"),
        (f"`{A}`", f"`{A}`"),
        (f"```md\n{A}\n```\n{A}", f"```md\n{A}\n```\n[a](../a.md)"),
        (f"> - ````\n>   ```\n{A}\n", f"> - ````\n>   ```\n{A}\n"),
    ],
)
def test_links_to_pages_are_paths_outside_code(links: PageLinks, text: str, linked: str) -> None:
    assert links.localize("h/api/b-c.md", text) == linked


def test_a_link_to_the_page_itself_is_its_part(links: PageLinks) -> None:
    assert links.localize("h/a.md", "[s](https://e.org/d/a.html#set-up)") == "[s](#set-up)"


def test_pages_of_a_topic_lead_to_one_another_and_a_refresh_knows_them(
    library: Library, site: Site
) -> None:
    start = site.put("/d/", "<h1>D</h1><a href=a>a</a> <a href=/x>x</a> <a href=/d/b>b</a>")
    site.put("/d/a", "<h1>A</h1><p><a href=/d/#d>up</a>")
    other = site.put("/x", "<h1>X</h1><p><a href=/d/a>a</a>")
    create_topic(library, request(CrawlSource(url=start), WebSource(url=other)), yes)
    files = files_of(library)
    page = next(path for path in files if "/" not in path)
    folder = page.removesuffix("-x.md")
    assert files == {
        f"{folder}/d/a.md": "# A\n\n[up](index.md#d)\n",
        f"{folder}/d/index.md": f"# D\n\n[a](a.md) [x](../../{page}) [b]({site.url}/d/b)\n",
        page: f"# X\n\n[a]({folder}/d/a.md)\n",
    }
    assert library.verify("topic-frob") == differences()
    assert refresh_topic(library, "topic-frob", never)["changed"] is False

    site.put("/d/b", "<h1>B</h1>")
    refreshed = refresh_topic(library, "topic-frob", never)
    assert (refreshed["added"], refreshed["modified"], refreshed["removed"]) == (1, 1, 0)
    assert "[b](b.md)" in files_of(library)[f"{folder}/d/index.md"]
    assert library.verify("topic-frob") == differences()
