"""Export a topic as one archive, and import such an archive, verified by its hashes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from llm_kb.files.atomic import WriteError
from llm_kb.files.fields import Fields
from llm_kb.files.opener import read_regular
from llm_kb.references.errors import (
    PlanChangedError,
    ShareError,
    TooLargeError,
)
from llm_kb.references.fetch.create import Created
from llm_kb.references.fetch.publish import index_topic, put_in_place
from llm_kb.references.fetch.staging import Staged
from llm_kb.references.library import Library
from llm_kb.references.plan.make import Progress, open_remotes, silent
from llm_kb.references.sources.archive import list_archive, read_archive
from llm_kb.references.sources.file_names import is_safe_path
from llm_kb.references.sources.records import GitSource, LocalSource, read_source
from llm_kb.references.sources.rules import check_web_url, host_and_port
from llm_kb.references.topic.old_topic import OldTopic
from llm_kb.references.topic.provenance import (
    FILE_NAME,
    Provenance,
    hash_content,
    parse_provenance,
)
from llm_kb.references.topic.topic_directory import RESERVED, TOPIC_FILE, StoredTopic
from llm_kb.references.topic.topic_text import parse_topic_file, without_heading

MAX_TOPIC_FILE = 1_000_000
"""Most bytes of an archive's `topic.md`: parsing takes some milliseconds for each 1,000."""


def export_topic(library: Library, topic_id: str, path: Path) -> int:
    """Write a topic, with its record of files, into a new `.tar.gz`; return the number of files.

    Files that were added by hand are left out. Raises ShareError for a topic that differs
    from its record, or that has files of this machine.
    """
    topic = library.store.open(topic_id)
    recorded = topic.read_provenance()
    _refuse_local(topic, recorded, topic_id)
    there = OldTopic.match(topic.directory, recorded, recorded.sources)
    differing = [name for name, each in recorded.files.items() if not there.has({name: each})]
    if differing or not recorded.files:
        what = f"{differing[0]} is not as it was fetched" if differing else "it has no files"
        raise ShareError(
            topic_id, f"{what}; refresh it first: llm kb references refresh {topic_id}"
        )
    try:
        with tarfile.open(path, "x:gz") as archive:
            for name in (TOPIC_FILE, FILE_NAME, *sorted(recorded.files)):
                data = read_regular(topic.directory / name, follow_link=name == TOPIC_FILE)
                entry = tarfile.TarInfo(f"{topic_id}/{name}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error
    return len(recorded.files)


def import_topic(library: Library, path: Path, progress: Progress = silent) -> Created:
    """Create the topic in an archive; raise ShareError unless it is complete.

    The archive must have exactly the files of the record, with their hashes.
    """
    sizes = {file.path: file.size or 0 for file in list_archive(path) if file.mode == "100644"}
    settings = library.settings
    if sum(sizes.values()) > settings.max_bytes or len(sizes) > settings.max_files:
        raise TooLargeError(str(path), "it is over max_bytes or max_files")
    if sizes.get(TOPIC_FILE, 0) > MAX_TOPIC_FILE:
        raise TooLargeError(str(path), f"its {TOPIC_FILE} has over {MAX_TOPIC_FILE:,} bytes")
    own = dict(read_archive(path, [TOPIC_FILE, FILE_NAME]))
    if set(own) != {TOPIC_FILE, FILE_NAME}:
        raise ShareError(path.name, f"it has no {TOPIC_FILE} and {FILE_NAME} of a topic")
    recorded = parse_provenance(own[FILE_NAME], f"{path.name}: {FILE_NAME}")
    text = own[TOPIC_FILE].decode("utf-8", "replace")
    topic_id = parse_topic_file(text, f"{path.name}: {TOPIC_FILE}").id
    library.store.clean()
    library.store.require_free(topic_id)
    with library.store.lock(topic_id):
        if library.store.exists(topic_id):
            delete = f"llm kb references delete {topic_id}"
            raise ShareError(path.name, f"there is a topic {topic_id!r} already; first: {delete}")
        topic = StoredTopic.parse(library.store.directory(topic_id), text)
        _refuse_local(topic, recorded, topic_id)
        with library.store.staging(topic_id) as directory:
            staged = Staged(
                directory=directory,
                now="",
                most_bytes=settings.max_bytes,
                old=OldTopic.none(()),
            )
            _unpack(path, recorded, staged)
            # Without a request: nobody here has approved the hosts that it was fetched from.
            record = replace(recorded, request="", hosts=())
            put_in_place(library, topic_id, staged, text, record)
    chunks, problems = index_topic(library, topic_id, progress)
    return Created(
        topic_id=topic_id,
        file_count=len(recorded.files),
        chunk_count=chunks,
        warnings=tuple(problems),
    )


def fetch_archive(
    library: Library,
    url: str,
    sha256: str | None,
    approve: Callable[[str], bool],
    progress: Progress = silent,
) -> Created:
    """Import a topic from the web; `approve` is called for each host it leads to.

    Raises ShareError for an address that is not https (or http to a host of `allow_hosts`).
    """
    url = check_web_url(url, "import")
    known, hosts = f"sha256:{sha256}" if sha256 else None, set[str]()
    place = url
    with open_remotes(library) as remotes:
        while True:
            host = urlsplit(place).hostname
            if not place.startswith("https://") and host not in library.settings.allow_hosts:
                raise ShareError(place, "it is not https")
            if not approve(host_and_port(place)):
                raise ShareError(url, "you said no, so nothing was fetched")
            hosts.add(host_and_port(place))
            try:
                return import_topic(library, remotes.download(url, known, hosts), progress)
            except PlanChangedError as error:
                if error.leads_to is None or host_and_port(error.leads_to) in hosts:
                    raise
                place = error.leads_to


def describe_kept(library: Library, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return title, body, tags and age of the topic kept in a repository; empty without one.

    Anybody may have written them, so they are checked like any other request.
    """
    fields = Fields(table)
    source = read_source(fields, protocols=library.settings.allow_protocols)
    if not isinstance(source, GitSource):
        return {}
    with open_remotes(library) as remotes:
        pinned = replace(source, commit=remotes.find_commit(source))
        repository = remotes.open(pinned)
        own = [file for file in repository.tree(pinned).own if file.path.endswith(TOPIC_FILE)]
        fetched = [f for f in repository.fetch_blobs(own) if (f.size or 0) <= MAX_TOPIC_FILE]
        for file, data in repository.read(fetched):
            topic = parse_topic_file(data.decode("utf-8", "replace"), f"{source.url}: {file.path}")
            return {
                "title": topic.title,
                "body": without_heading(topic.title, topic.body),
                "tags": list(topic.tags),
                "max_age_days": topic.max_age_days,
            }
    return {}


def _unpack(path: Path, recorded: Provenance, staged: Staged) -> None:
    for name, data in read_archive(path, list(recorded.files)):
        if (
            not is_safe_path(name)
            or name in RESERVED
            or hash_content(data) != recorded.files[name].hash
        ):
            raise ShareError(path.name, f"{name!r} is not the file that its record names")
        staged.write(name, data, recorded.files[name])
    if missing := sorted(recorded.files.keys() - staged.files):
        raise ShareError(path.name, f"{missing[0]!r} of its record is missing")


def _refuse_local(topic: StoredTopic, recorded: Provenance, name: str) -> None:
    """Raise ShareError for local files: a refresh elsewhere would read another machine's."""
    if any(isinstance(each, LocalSource) for each in (*topic.file.sources, *recorded.sources)):
        raise ShareError(name, "it has a source of type local, which others do not have")
