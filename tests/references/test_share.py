"""A topic as one archive: importing restores what was exported, or is an error."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llm_kb.errors import KbError
from llm_kb.references.ask import ask
from llm_kb.references.errors import FetchError, ShareError
from llm_kb.references.fetch.create import create_topic, plan_topic
from llm_kb.references.fetch.refresh import refresh_topic
from llm_kb.references.fetch.share import (
    describe_kept,
    export_topic,
    fetch_archive,
    import_topic,
)
from llm_kb.references.library import Library
from llm_kb.references.sources.records import GitSource, LocalSource
from llm_kb.references.topic.provenance import Differences, hash_content
from tests.references.remotes import Remote
from tests.references.requests import files_of, never, request, yes
from tests.references.sites import Answer, Site

Files = dict[str, bytes]


@pytest.fixture
def exported(library: Library, remote: Remote, tmp_path: Path) -> Path:
    """An archive of a topic of three files."""
    create_topic(library, request(GitSource(url=remote.url)), yes)
    (library.store.directory("topic-frob") / "NOTES.md").write_text("mine")
    path = tmp_path / "frob.tar.gz"
    assert export_topic(library, "topic-frob", path) == 3
    return path


@pytest.fixture
def other(library: Library, tmp_path: Path) -> Library:
    """The library of somebody else."""
    return replace(library, root=tmp_path / "other")


def test_a_topic_comes_back_as_it_was(library: Library, exported: Path, other: Library) -> None:
    created = import_topic(other, exported)
    assert (created.topic_id, created.file_count, created.warnings) == ("topic-frob", 3, ())
    before = files_of(library)
    del before["NOTES.md"]
    assert files_of(other) == before
    assert other.verify("topic-frob") == Differences()
    assert other.read("topic-frob") == library.read("topic-frob")
    assert ask(other, "lifecycle hooks")["results"][0]["file"] == "docs/guide.md"
    assert refresh_topic(other, "topic-frob", never).changed is False
    with pytest.raises(ShareError, match="already; first: llm kb references delete topic-frob"):
        import_topic(other, exported)


def rewrite(path: Path, change: Callable[[Files], object]) -> None:
    """Change what an archive holds."""
    with tarfile.open(path) as archive:
        files = {e.name: (archive.extractfile(e) or io.BytesIO()).read() for e in archive}
    change(files)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def name_elsewhere(files: Files) -> None:
    record = json.loads(files["topic-frob/.provenance.json"])
    record["files"]["../x.md"] = record["files"].pop("README.md")
    files["topic-frob/.provenance.json"] = json.dumps(record).encode()
    files["topic-frob/../x.md"] = files.pop("topic-frob/README.md")


def name_local(files: Files) -> None:
    text = files["topic-frob/topic.md"].decode()
    local = '[[sources]]\ntype = "local"\nurl = "/etc"\n+++\n'
    files["topic-frob/topic.md"] = (text[: text.index("[[sources]]")] + local).encode()


def change_file(files: Files) -> None:
    files["topic-frob/README.md"] = b"evil"


def break_topic(files: Files) -> None:
    files["topic-frob/topic.md"] = b"+++\nid = 1\n+++\n"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(change_file, "'README.md' is not the file that its record", id="a change"),
        pytest.param(
            lambda files: files.pop("topic-frob/README.md"),
            "'README.md' of its record is missing",
            id="a missing file",
        ),
        pytest.param(
            lambda files: files.pop("topic-frob/topic.md"), "it has no topic.md", id="no topic"
        ),
        pytest.param(break_topic, "topic.md: type is", id="no valid one"),
        pytest.param(name_elsewhere, "is not a path inside the topic", id="a path outside"),
        pytest.param(name_local, "it has a source of type local", id="a directory of this machine"),
    ],
)
def test_what_is_not_whole_is_refused(
    exported: Path, other: Library, change: Callable[[Files], object], reason: str
) -> None:
    rewrite(exported, change)
    with pytest.raises(KbError, match=reason):
        import_topic(other, exported)
    assert other.store.ids() == []


def test_files_beside_the_record_are_not_unpacked(exported: Path, other: Library) -> None:
    rewrite(exported, lambda files: files.update({"topic-frob/evil.md": b"x"}))
    import_topic(other, exported)
    assert "evil.md" not in files_of(other)


def test_a_topic_that_differs_or_is_local_is_not_exported(
    library: Library, remote: Remote, notes: Path, tmp_path: Path
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    (library.store.directory("topic-frob") / "README.md").write_text("changed")
    with pytest.raises(ShareError, match=r"README.md is not as it was fetched; refresh it first"):
        export_topic(library, "topic-frob", tmp_path / "x.tar.gz")
    library.delete("topic-frob")
    create_topic(library, request(LocalSource(url=str(notes))), yes)
    with pytest.raises(ShareError, match="it has a source of type local"):
        export_topic(library, "topic-frob", tmp_path / "x.tar.gz")
    assert not (tmp_path / "x.tar.gz").exists()


def test_no_file_is_overwritten(library: Library, exported: Path) -> None:
    before = exported.read_bytes()
    with pytest.raises(KbError, match="File exists"):
        export_topic(library, "topic-frob", exported)
    assert exported.read_bytes() == before


def serve(site: Site, archive: Path) -> str:
    return site.answer("/f/frob.tar.gz", Answer(archive.read_bytes(), kind="application/gzip"))


def test_a_topic_is_imported_from_the_web_once_each_host_is_approved(
    library: Library, exported: Path, other: Library, site: Site
) -> None:
    settings = replace(library.settings, allow_hosts=("127.0.0.1", "localhost"))
    other = replace(other, settings=settings)
    elsewhere = serve(site, exported).replace("127.0.0.1", "localhost")
    url = site.redirect("/frob.tar.gz", elsewhere)
    asked: list[str] = []

    def approve(host: str) -> bool:
        asked.append(host)
        return len(asked) < 4

    digits = hash_content(exported.read_bytes()).removeprefix("sha256:")
    with pytest.raises(FetchError, match="it is not the file whose sha256 is known"):
        fetch_archive(other, url, "0" * 64, approve)
    assert fetch_archive(other, url, digits, yes).file_count == 3
    assert [host.partition(":")[0] for host in asked] == ["127.0.0.1", "localhost"]
    assert other.verify("topic-frob") == Differences()
    with pytest.raises(ShareError, match="you said no"):
        fetch_archive(other, url, None, lambda host: "localhost" not in host)
    assert site.requests[-1] == "GET /frob.tar.gz"


@pytest.mark.parametrize(
    "url", ["http://example.org/x.tar.gz", "file:///x.tar.gz", "https://u:p@x/"]
)
def test_an_archive_is_fetched_by_https_alone(other: Library, url: str) -> None:
    with pytest.raises(KbError):
        fetch_archive(other, url, None, never)


def keep(remote: Remote, library: Library, place: str = "topic-frob/") -> None:
    """Put a topic into a repository, as a team does."""
    directory = library.store.directory("topic-frob")
    names = ("topic.md", ".provenance.json", "README.md", "docs/guide.md")
    remote.write({f"{place}{name}": (directory / name).read_text() for name in names})


@pytest.mark.parametrize("below", ["topic-frob/", ""])
def test_a_topic_that_a_repository_keeps_is_a_source(
    library: Library, remote: Remote, other: Library, tmp_path: Path, below: str
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    team = Remote(tmp_path / "team", {"x/README.md": "# Ours\n"} if below else {})
    keep(team, library, below)
    source = GitSource(url=team.url, paths=(below,) if below else ())
    table = {"type": "git", "url": team.url, "paths": list(source.paths)}
    assert describe_kept(other, table) == {
        "title": "Frob", "body": "Frobnicates.", "tags": ["x"], "max_age_days": 30,
    }  # fmt: skip
    plan = plan_topic(other, request(source))
    assert (plan.files, plan.sources[0].notes) == (
        2, ("a topic that the repository keeps; its files have its commit as their origin",),
    )  # fmt: skip
    create_topic(other, request(source), yes)
    assert sorted(files_of(other)) == ["README.md", "docs/guide.md"]
    assert refresh_topic(other, "topic-frob", never).changed is False
    team.write({f"{below}docs/guide.md": "# New\n"})
    assert refresh_topic(other, "topic-frob", never).modified == 1
    record = other.store.open("topic-frob").read_provenance().files["docs/guide.md"]
    assert (record.url, record.commit) == (team.url, team.git("rev-parse", "HEAD"))


def test_what_a_repository_says_of_its_topic_is_only_text(
    library: Library, remote: Remote, other: Library
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    keep(remote, library)
    table = {"type": "git", "url": remote.url, "paths": ["topic-frob/"]}
    remote.write({"topic-frob/topic.md": "+++\nid = 1\n+++\n"})
    with pytest.raises(KbError, match=r"topic\.md: type is"):
        describe_kept(other, table)
    assert describe_kept(other, {**table, "paths": ["docs/"]}) == {}
