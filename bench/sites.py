"""What a crawl makes of sites: pages, requests, words and code, beside what is on disk.

    python bench/sites.py DIRECTORY[:START]...

Each directory of HTML pages, as a site generator built it, is served on loopback and crawled with
at most 500 pages, as `llm kb references create --crawl` does. What a page says is taken from
BeautifulSoup's tree of its main part, as in bench/pages.py. For sites in manuals.toml, the places
of the right pages among those found for their questions are printed. Needs
`pip install --group bench`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

from pages import WORD, find_main, flatten

from llm_kb.files.directory_topic import DirectoryTopic
from llm_kb.files.fields import decode_toml
from llm_kb.references.fetch.create import create_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.plan import Plan
from llm_kb.references.settings import References
from llm_kb.references.sources.records import CrawlSource
from llm_kb.references.topic.topic_directory import read_provenance
from llm_kb.references.topic.topic_file import TopicFile
from llm_kb.search.question import parse_question
from llm_kb.search.search import search
from llm_kb.subjects.topics import TopicConfig

MANUALS = Path(__file__).parent / "manuals.toml"


@dataclass
class Served:
    """The statuses of the answers given so far."""

    statuses: list[int] = field(default_factory=list)


class Handler(SimpleHTTPRequestHandler):
    """Serves files, also without `.html`, as hosts of sites do."""

    def __init__(self, *args: object, served: Served, **options: object) -> None:
        self.served = served
        super().__init__(*args, **options)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        """Return the file at a path."""
        found = super().translate_path(path)
        return f"{found}.html" if not Path(found).exists() else found

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Keep the status of an answer."""
        self.served.statuses.append(int(str(code)))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def measure(site: Path, start: str) -> None:
    """Crawl a site from a page on, twice, and print its row."""
    served = Served()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=site, served=served))
    Thread(target=server.serve_forever, daemon=True).start()
    source = CrawlSource(
        url=f"http://127.0.0.1:{server.server_port}/{start}", depth=5, max_pages=500
    )
    notes: list[str] = []

    def approve(plan: Plan) -> bool:
        notes.extend(plan.sources[0].notes)
        return True

    with tempfile.TemporaryDirectory() as place:
        library = Library(root=Path(place), settings=References(allow_hosts=("127.0.0.1",)))
        created = create_topic(
            library, TopicFile(id="topic-site", title="Site", sources=(source,)), approve
        )
        asked = len(served.statuses)
        words, code = compare(library, site)
        ranks = ask(library, site.name)
        refreshed = refresh_topic(library, "topic-site", lambda _: True)
        assert not refreshed["changed"], refreshed
    server.shutdown()
    on_disk = sum(1 for _ in site.rglob("*.html"))
    row = (site.name, on_disk, created["file_count"], asked, f"{words:.1%}", code, ranks)
    print(f"| {' | '.join(map(str, row))} |", flush=True)
    for note in (*notes, *created.get("warnings", [])):
        print(f"    {note}", file=sys.stderr)


def compare(library: Library, site: Path) -> tuple[float, str]:
    """Return the share of words kept, and how many blocks of code were, of how many."""
    root = library.directory("topic-site")
    said, kept, blocks, whole = 0, 0, 0, 0
    for path, record in read_provenance(root).files.items():
        page = site / unquote(urlsplit(record.url).path).strip("/")
        places = (page / "index.html", page, Path(f"{page}.html"))
        page = next(filter(Path.is_file, places), Path())
        if page.suffix != ".html":
            continue
        text = (root / path).read_text()
        main = find_main(page.read_text("utf-8", "replace"))
        wanted = Counter(WORD.findall(main.get_text()))
        said += wanted.total()
        kept += (wanted & Counter(WORD.findall(re.sub(r"\]\([^)\s]*\)", "]", text)))).total()
        for block in filter(str.strip, (pre.get_text().strip("\n") for pre in main("pre"))):
            blocks += 1
            whole += flatten(block) in flatten(text)
    return kept / max(1, said), f"{whole} of {blocks}"


def ask(library: Library, site: str) -> str:
    """Return the place of the first right page among those found for each question on a site."""
    questions = decode_toml(MANUALS.read_text()).get(site, {})
    topic = DirectoryTopic(TopicConfig(id="site", root=library.directory("topic-site")))
    ranks = []
    for question, right in questions.items():
        hits = search([topic.documents()], parse_question(question), limit=10).hits
        found = list(
            dict.fromkeys(hit.path.removesuffix(".md").removesuffix("/index") for hit in hits)
        )
        places = [at for at, path in enumerate(found, 1) if path.endswith(tuple(right))]
        ranks.append(str(min(places, default="-")))
    return " ".join(ranks)


if __name__ == "__main__":
    print("| site | on disk | fetched | requests | words kept | code verbatim | right page at |")
    print("|---|---|---|---|---|---|---|")
    for argument in sys.argv[1:]:
        directory, _, start = argument.partition(":")
        measure(Path(directory), start)
