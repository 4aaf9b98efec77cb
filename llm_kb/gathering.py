"""One pass over a topic's directory: from what lies there to the rows of its subjects."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from llm_kb.containment import Containment
from llm_kb.disabling import Disabled
from llm_kb.ignore import RULES_FILE, IgnoreRules
from llm_kb.layouts import SKILL_FILE, FilesReader, Reader, SkillsReader
from llm_kb.naming import Rows
from llm_kb.topics import Layout, Skipped, Topic
from llm_kb.walk import Batch, Place, Walk, describe

_MOST_RULES = 1 << 16
"""Bytes of a `.kbignore` that are read."""

_NO_SKILL = f"it lies in no directory with a {SKILL_FILE}"


class Gathering:
    """The rows of the subjects seen so far, and in `skipped` what is none, and why."""

    def __init__(self, topic: Topic, containment: Containment, disabled: Disabled | None) -> None:
        self.skipped: list[Skipped] = []
        self.walk = Walk(containment, _read_ignore(topic, containment, self.skipped), self.skipped)
        self.reader = _open_reader(topic, containment)
        self._disabled = disabled
        self.start_over()

    def start_over(self) -> None:
        """Forget the rows, and nothing else."""
        self.rows = Rows(self.reader.is_hidden)

    def scan(self, place: Place, keep: Callable[[str], bool]) -> None:
        """Add the subjects of one directory whose file names are to be kept."""
        entries = self.walk.list_place(place)
        if entries is not None:
            files, links = (list(filter(keep, names)) for names in (entries.files, entries.links))
            narrowed = entries._replace(files=files, links=links, directories=[], others=[])
            self.add(self.walk.sort_entries(place, narrowed)[0])

    def add(self, batch: Batch) -> None:
        """Add the subjects of one directory that are not disabled."""
        place, names, bare = batch.place, batch.names, batch.bare
        slugs = self.reader.slugs(batch)
        in_place = self.reader.has_slugs_in_place
        if self._disabled is not None or not in_place:
            self._report_strays(place, names, slugs)
            kept = [
                (slug, name)
                for slug, name in zip(slugs, names, strict=True)
                if slug and not self._is_disabled(batch, slug, name)
            ]
            slugs, names, bare = [slug for slug, _ in kept], [name for _, name in kept], 0
        files = names
        if not in_place or place.path != place.slug:
            files = [place.path + name for name in names]
        if batch.real is not None:
            self.rows.real_paths.update((place.path + n, batch.real + n) for n in names)
        self.rows.add(slugs, files)
        # A bare name hides nothing by itself.
        start = bare if in_place and not place.is_hidden else 0
        if start < len(names):
            self.rows.hidden.update(
                slug
                for slug, name in zip(slugs[start:], names[start:], strict=True)
                if self.reader.is_hidden(place.path + name)
            )

    def _report_strays(self, place: Place, names: Sequence[str], slugs: Sequence[str]) -> None:
        self.skipped += [
            Skipped(path=place.path + name, reason=_NO_SKILL)
            for name, slug in zip(names, slugs, strict=True)
            if not slug
        ]

    def _is_disabled(self, batch: Batch, slug: str, name: str) -> bool:
        if self._disabled is None:
            return False
        paths = [batch.place.path + name]
        if batch.real is not None:
            paths.append(batch.real + name)
        if name in batch.targets:
            paths.append(batch.targets[name])
        owner = self.reader.owner(batch)
        return self._disabled.covers(slug, paths) or (
            owner is not None and self._disabled.covers(owner, ())
        )


def _open_reader(topic: Topic, containment: Containment) -> Reader:
    if topic.layout is Layout.SKILLS:
        return SkillsReader(lambda path: os.path.isfile(containment.prefix + path + SKILL_FILE))
    return FilesReader()


def _read_ignore(topic: Topic, containment: Containment, skipped: list[Skipped]) -> IgnoreRules:
    # Later rules win: what the configuration ignores, no file in the topic brings back.
    groups = ((RULES_FILE, _read_rules(containment, skipped)), ("ignore", topic.ignore))
    rules = IgnoreRules(groups)
    skipped += rules.problems
    return rules


def _read_rules(containment: Containment, skipped: list[Skipped]) -> Sequence[str]:
    try:
        data, _, _ = containment.read_file(RULES_FILE, _MOST_RULES)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        skipped.append(Skipped(path=RULES_FILE, reason=describe(error)))
        return ()
    return data.decode("utf-8-sig", errors="replace").splitlines()
