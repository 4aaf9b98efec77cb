"""A topic as one archive: what comes back is what was exported, or an error."""

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
from llm_kb.references.errors import ShareError, TopicExistsError
from llm_kb.references.fetch.create import create_topic
from llm_kb.references.fetch.refresh import refresh_topic
from llm_kb.references.fetch.share import export_topic, import_topic
from llm_kb.references.library import Library
from llm_kb.references.sources.records import GitSource, LocalSource
from llm_kb.references.topic.provenance import Differences
from tests.references.remotes import Remote
from tests.references.requests import files_of, never, request, yes

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
    with pytest.raises(TopicExistsError):
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
            lambda files: files.pop("topic-frob/topic.md"), "it holds no topic.md", id="no topic"
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
