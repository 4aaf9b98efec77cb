"""A refresh: files fetched again, files kept, and questions to the operator."""

from __future__ import annotations

import os
import resource
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from llm_kb.errors import KbError
from llm_kb.files.atomic import WriteError
from llm_kb.references.errors import NothingFetchedError
from llm_kb.references.fetch.create import create_topic, index_topic, refresh_topic
from llm_kb.references.library import Library
from llm_kb.references.sources.records import GitSource, WebSource
from llm_kb.references.topic.topic_directory import read_provenance
from llm_kb.references.topic.topic_file import is_stale
from llm_kb.search.index.index import Embedder, open_index
from tests.references.conftest import Clock
from tests.references.remotes import Remote
from tests.references.requests import PAGE, differences, files_of, never, refreshed_to, request, yes
from tests.references.sites import Site
from tests.search.embedding import HashingModel


def settle_index(library: Library) -> None:
    """Make the files so old that no update of the index looks at them a second time."""
    root = library.directory("topic-frob")
    for path in library.read("topic-frob").files:
        os.utime(root / path, (0, 0))
    time.sleep(0.06)
    index_topic(library, "topic-frob", lambda *_: None)


def test_refresh_fetches_what_changed_and_keeps_the_rest_untouched(
    library: Library, remote: Remote, clock: Clock
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    root = library.directory("topic-frob")
    before = (root / "src/frob.py").stat()
    remote.git("rm", "--quiet", "README.md")
    commit = remote.write({"docs/guide.md": "# New guide\n", "docs/more.md": "more"})
    clock.now += timedelta(days=40)

    refreshed = refresh_topic(library, "topic-frob", never)

    assert refreshed == refreshed_to(added=1, modified=1, removed=1, file_count=3)
    assert files_of(library) == {
        "docs/guide.md": "# New guide\n",
        "docs/more.md": "more",
        "src/frob.py": "def frobnicate(widget):\n    return widget\n",
    }
    after = (root / "src/frob.py").stat()
    assert after.st_mtime_ns == before.st_mtime_ns
    topic = library.read("topic-frob")
    assert topic.sources == (GitSource(url=remote.url, commit=commit),)
    assert topic.fetched_at == clock.now
    assert topic.files == ("docs/guide.md", "docs/more.md", "src/frob.py")
    assert library.verify("topic-frob") == differences()


def test_refresh_of_an_unchanged_page_is_one_request_and_no_new_index(
    library: Library, site: Site, clock: Clock
) -> None:
    create_topic(library, request(WebSource(url=site.put("/a", PAGE))), yes)
    settle_index(library)
    with closing(sqlite3.connect(library.index)) as database, database:
        database.execute("UPDATE chunks SET title = 'of the first index'")
    site.requests.clear()
    clock.now += timedelta(days=40)
    assert is_stale(library.read("topic-frob"), clock.now)

    refreshed = refresh_topic(library, "topic-frob", never)

    assert refreshed == refreshed_to(changed=False, file_count=1)
    assert site.requests == ["GET /a"]
    assert site.received[-1]["if-none-match"]
    with closing(sqlite3.connect(library.index)) as database:
        titles = database.execute("SELECT DISTINCT title FROM chunks").fetchall()
    assert titles == [("of the first index",)]  # a digest was compared, nothing written again
    assert not is_stale(library.read("topic-frob"), clock.now)


def test_a_refresh_completes_an_index_that_was_interrupted(
    library: Library, remote: Remote
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    path = library.index
    path.unlink()
    refresh_topic(library, "topic-frob", never)
    with open_index(library.index) as index:
        assert index.count_chunks() == 3


def test_a_refresh_embeds_what_has_no_vector_yet(library: Library, remote: Remote) -> None:
    """The embedding was interrupted, or the user has a model only now."""
    create_topic(library, request(GitSource(url=remote.url)), yes)
    model = HashingModel(fail_after=0)
    embedding = replace(library, find_embedder=lambda: Embedder(model="hash", embed=model))
    with pytest.raises(KeyboardInterrupt):
        refresh_topic(embedding, "topic-frob", never)
    model.fail_after = None
    assert refresh_topic(embedding, "topic-frob", never)["changed"] is False
    assert len(model.texts) == 3
    settle_index(library)
    refresh_topic(embedding, "topic-frob", never)
    assert len(model.texts) == 3


def test_a_topic_that_cannot_be_indexed_is_said_to_be_there(
    library: Library, remote: Remote
) -> None:
    library.root.mkdir()
    (library.root / ".index").write_text("in the way")
    told = (
        r"^topic-frob is fetched and can be read, but not searched: cannot use the index .*; "
        "once that is fixed, index it: llm kb references refresh topic-frob$"
    )
    with pytest.raises(KbError, match=told):
        create_topic(library, request(GitSource(url=remote.url)), yes)
    assert library.ids() == ["topic-frob"]
    with pytest.raises(KbError, match=told):
        refresh_topic(library, "topic-frob", never)
    (library.root / ".index").unlink()
    assert refresh_topic(library, "topic-frob", never)["changed"] is False


def test_a_full_disk_is_named_and_leaves_the_topic_as_it_was(library: Library, site: Site) -> None:
    url = site.put("/a", PAGE)
    create_topic(library, request(WebSource(url=url), WebSource(url=site.put("/b", PAGE))), yes)
    before = files_of(library)
    site.put("/a", "<p>" + "word " * 10_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(WriteError, match=r"cannot write '.*/\.staging/.*\.md': File too large"):
            refresh_topic(library, "topic-frob", never)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files_of(library) == before


def test_a_page_without_text_is_told_once(library: Library, site: Site) -> None:
    page = WebSource(url=site.put("/a", "<script>draw()</script>"))
    with pytest.raises(NothingFetchedError) as caught:
        create_topic(library, request(page), yes)
    assert caught.value.reasons == (
        f"{page.url}: there is no text in it (is it drawn by a script?)",
    )


def test_refresh_of_an_unchanged_repository_runs_git_once(
    library: Library, remote: Remote, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    log = tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE", "")
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    real = remote.git("--exec-path") + "/git"
    wrapper.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", str(wrapper.parent), prepend=":")
    assert refresh_topic(library, "topic-frob", never)["changed"] is False
    runs = log.read_text().splitlines()
    assert len(runs) == 1
    assert " ls-remote " in runs[0]


def test_a_failed_refresh_leaves_the_topic_as_it_was(
    library: Library, remote: Remote, clock: Clock
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    before = (library.read_text("topic-frob"), files_of(library))
    remote.directory.rename(remote.directory.with_name("gone"))
    clock.now += timedelta(days=1)
    with pytest.raises(NothingFetchedError):
        refresh_topic(library, "topic-frob", never)
    assert (library.read_text("topic-frob"), files_of(library)) == before


def test_a_refresh_keeps_the_files_of_a_source_that_failed(
    library: Library, remote: Remote, site: Site
) -> None:
    url = site.put("/a", PAGE)
    create_topic(
        library, request(GitSource(url=remote.url, paths=("README.md",)), WebSource(url=url)), yes
    )
    before = files_of(library)
    site.answers.clear()
    remote.write({"README.md": "# Changed\n"})
    refreshed = refresh_topic(library, "topic-frob", never)
    assert files_of(library) == before | {"README.md": "# Changed\n"}
    assert refreshed["warnings"] == [f"cannot fetch {url}: the server answered 404"]


def test_refresh_brings_back_files_that_were_lost_or_edited(
    library: Library, remote: Remote
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    before = files_of(library)
    root = library.directory("topic-frob")
    (root / "README.md").unlink()
    guide = root / "docs/guide.md"
    guide.write_text(guide.read_text().replace("first", "never"))  # of the same size
    assert library.verify("topic-frob") == differences(
        missing=["README.md"], modified=["docs/guide.md"]
    )
    refreshed = refresh_topic(library, "topic-frob", never)
    assert files_of(library) == before
    assert refreshed == refreshed_to(modified=2, file_count=3)


def test_files_that_could_not_be_fetched_stay_as_they_were_edited(
    library: Library, remote: Remote, site: Site
) -> None:
    page = WebSource(url=site.put("/a", PAGE))
    create_topic(library, request(GitSource(url=remote.url), page), yes)
    root = library.directory("topic-frob")
    for path in library.read("topic-frob").files:
        (root / path).write_text("edited here")
    site.answers.clear()
    remote.write({"README.md": "# Changed\n"})
    refreshed = refresh_topic(library, "topic-frob", never)
    # README.md is the source's; the other two files of the repository are as before.
    assert (refreshed["added"], refreshed["modified"], refreshed["removed"]) == (0, 3, 0)
    assert len(refreshed["warnings"]) == 1


def test_a_refresh_that_grows_a_lot_is_asked_about(library: Library, remote: Remote) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    remote.write({"huge.txt": "x" * 2_000_000})
    reasons: list[str] = []

    def deny(reason: str) -> bool:
        reasons.append(reason)
        return False

    with pytest.raises(KbError, match="you said no"):
        refresh_topic(library, "topic-frob", deny)
    assert reasons == ["it grew from 123 B to ~2.0 MB"]
    assert "huge.txt" not in files_of(library)


def test_a_hand_edited_topic_file_keeps_its_comments_through_a_refresh(
    library: Library, remote: Remote
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    path = library.directory("topic-frob") / "topic.md"
    edited = path.read_text().replace("tags =", "# mine\nowner = 'me'\ntags =")
    path.write_text(edited)
    commit = remote.write({"a.md": "a"})
    refresh_topic(library, "topic-frob", never)
    assert path.read_text() == edited.replace(
        read_provenance(library.directory("topic-frob")).files["a.md"].commit or "", commit
    ).replace(edited.split('commit = "')[1][:40], commit).replace(
        'files = ["README.md"', 'files = ["README.md", "a.md"'
    )


def test_a_refresh_keeps_the_files_that_were_put_in_by_hand(
    library: Library, remote: Remote
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    root = library.directory("topic-frob")
    (root / "NOTES.md").write_text("mine")
    (root / "docs/new.md").write_text("mine as well")
    (root / "link").symlink_to("README.md")
    remote.write({"docs/new.md": "theirs", "docs/guide.md": "# New\n"})

    refreshed = refresh_topic(library, "topic-frob", never)

    assert (refreshed["added"], refreshed["modified"]) == (1, 1)
    assert refreshed["own"] == ["NOTES.md", "docs/new-2.md", "link"]
    assert refreshed["warnings"] == [
        "your file 'docs/new.md' is now 'docs/new-2.md': a source has its name"
    ]
    files = files_of(library)
    assert (files["NOTES.md"], files["docs/new.md"], files["docs/new-2.md"]) == (
        "mine", "theirs", "mine as well",
    )  # fmt: skip
    assert (root / "link").readlink() == Path("README.md")
    assert library.verify("topic-frob")["unreadable"] == ["link"]


def test_without_a_record_what_is_fetched_again_replaces_what_was_there(
    library: Library, remote: Remote
) -> None:
    create_topic(library, request(GitSource(url=remote.url)), yes)
    root = library.directory("topic-frob")
    before = files_of(library)
    (root / ".provenance.json").unlink()
    (root / "mine.md").write_text("mine")
    assert refresh_topic(library, "topic-frob", never)["own"] == ["mine.md"]
    assert files_of(library) == {**before, "mine.md": "mine"}
