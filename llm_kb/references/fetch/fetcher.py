"""Fetch planned sources into a staged topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llm_kb.errors import KbError
from llm_kb.files.atomic import WriteError
from llm_kb.references.errors import (
    FetchError,
    PlanChangedError,
    TopicTooLargeError,
    refuse_hostile,
)
from llm_kb.references.plan.kind import Progress
from llm_kb.references.plan.kinds import open_kind
from llm_kb.references.plan.plan import PlannedSource
from llm_kb.references.plan.remotes import Remotes
from llm_kb.references.sources.file_names import unused_name
from llm_kb.references.sources.records import Source
from llm_kb.references.topic.links import PageLinks
from llm_kb.references.topic.provenance import FileRecord, hash_content
from llm_kb.references.topic.staging import Staged


def fetch_sources(
    sources: Sequence[PlannedSource], staged: Staged, remotes: Remotes, progress: Progress
) -> None:
    """Fetch every source; one that fails is a warning, and keeps its old files.

    Raises PlanChangedError if a source differs from the approved plan, and
    TopicTooLargeError if all of them together exceed `max_bytes`.
    """
    folders = choose_folders([planned.source for planned in sources], staged.old.files)
    for index, planned in enumerate(sources):
        kind = open_kind(index, planned.source, staged.old, remotes, progress)
        try:
            if planned.problem:
                raise FetchError(planned.source.url, planned.problem)
            with refuse_hostile(planned.source.url):
                kind.fetch(planned, staged, folders.get(index, ""))
        except (PlanChangedError, TopicTooLargeError, WriteError):
            raise
        except KbError as error:
            staged.warnings.append(str(error))
            staged.fail_source(index)
    _link_pages(staged)


def _link_pages(staged: Staged) -> None:
    """Make links between pages relative, after all pages have their names."""
    links = PageLinks(staged.directory, staged.files)
    for path, record in links.pages.items():
        data = staged.read(path)
        linked = links.localize(path, data.decode("utf-8", "replace")).encode()
        # A file that was edited here is not changed.
        if linked != data and hash_content(data) == record.hash:
            staged.rewrite(path, linked)
        staged.reuse(path)


def choose_folders(sources: Sequence[Source], old: Mapping[str, FileRecord]) -> Mapping[int, str]:
    """Give each repository and directory a folder of its own if there are several.

    A folder with `old` files of another source stays that source's, which may fail
    and keep them.
    """
    trees = [(index, source) for index, source in enumerate(sources) if source.is_tree]
    folders: dict[int, str] = {}
    for index, source in trees if len(trees) > 1 else []:
        others = {path.split("/")[0] for path, record in old.items() if record.source != index}
        folders[index] = unused_name(source.folder, [*folders.values(), *others])
    return folders
