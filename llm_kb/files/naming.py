"""What the subjects of a topic are called: their slugs, or more where files share one.

Rows stay light, a slug and a string each; a record is made when one is looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import islice
from operator import eq
from typing import overload

from llm_kb.subjects.spelling import compose, strip_extension
from llm_kb.subjects.topics import Slug, Subject, Visibility

IsHidden = Callable[[str], bool]

_LISTED, _HIDDEN = Visibility.LISTED, Visibility.HIDDEN


class Rows:
    """The slugs of a topic as they are found, each with the file that has it.

    A file is held as its name if its directory's path is its slug's, as it nearly
    always is, and as its whole path otherwise.
    """

    def __init__(self, is_hidden: IsHidden) -> None:
        self.is_hidden = is_hidden
        self.hidden: set[str] = set()
        """The slugs of hidden subjects; where files share one, `is_hidden` tells of each."""
        self.real_paths: dict[str, str] = {}
        """By path, that without the links on the way to its directory, where there are any."""
        self._slugs: list[str] = []
        self._order: Sequence[str] = ()
        self._files: list[str] = []

    def add(self, slugs: Sequence[str], files: Sequence[str]) -> None:
        """Add files, each with its slug."""
        self._slugs += slugs
        self._files += files

    def settle(self, matches: Callable[[str], object] | None = None) -> Subjects:
        """Return the subjects in order; with `matches`, those whose slug it accepts."""
        self._order = sorted(self._slugs)
        slugs = self._order if matches is None else list(filter(matches, self._order))
        return Subjects(slugs, self)

    @cached_property
    def settled(self) -> Mapping[str, Sequence[Subject]]:
        """The subjects of each slug that files share, or that the name of one of these takes."""
        # Sorted, files that share a slug are neighbours.
        is_shared = any(map(eq, self._order, islice(self._order, 1, None)))
        return self._name_shared() if is_shared else {}

    def path(self, slug: str) -> str:
        """Return the path of the one file that has a slug."""
        return _join(slug, self.file_by_slug[slug])

    def make_subject(self, slug: str, name: str, path: str, is_hidden: bool) -> Subject:
        """Return the record of one file."""
        real_path = self.real_paths.get(path) if self.real_paths else None
        return Subject(Slug(slug), name, path, _HIDDEN if is_hidden else _LISTED, real_path)

    @cached_property
    def file_by_slug(self) -> dict[str, str]:
        """The file of each slug, as held; made when a subject is first looked at."""
        return dict(zip(self._slugs, self._files, strict=True))

    def _name_shared(self) -> dict[str, list[Subject]]:
        """Name the files that share a slug, and those whose slug such a name takes."""
        times = Counter(self._slugs)
        shared: dict[str, list[str]] = {}
        for slug, file in zip(self._slugs, self._files, strict=True):
            if times[slug] > 1:
                shared.setdefault(slug, []).append(_join(slug, file))
        slugs = {path: slug for slug, paths in shared.items() for path in paths}
        names: dict[str, str] = {}
        for slug, paths in shared.items():
            names.update(_propose_names(slug, paths, self.is_hidden))
        while clashing := self._find_clashes(names, slugs, times):
            for path in clashing:
                written = compose(path)
                names[path] = written if names[path] != written else path
        settled: dict[str, list[Subject]] = {}
        for path in sorted(names, key=names.__getitem__):
            subject = self.make_subject(slugs[path], names[path], path, self.is_hidden(path))
            settled.setdefault(slugs[path], []).append(subject)
        return settled

    def _find_clashes(
        self, names: dict[str, str], slugs: dict[str, str], times: Counter[str]
    ) -> list[str]:
        """Return the files that must take a fuller name; bring in those not named so far."""
        owners: dict[str, list[str]] = {}
        for path, name in names.items():
            owners.setdefault(name, []).append(path)
        for name, paths in owners.items():
            if times[name] == 1:
                path = self.path(name)
                if path not in names:
                    slugs[path] = names[path] = name
                    paths.append(path)
        return [
            path
            for paths in owners.values()
            if len(paths) > 1
            for path in paths
            if names[path] != path
        ]


class Subjects(Sequence[Subject]):
    """Subjects sorted by slug, each made when it is looked at."""

    def __init__(self, slugs: Sequence[str], rows: Rows) -> None:
        self.slugs = slugs
        """The slug of each; one that several files share stands there several times."""
        self.hidden: AbstractSet[str] = rows.hidden
        """The slugs of hidden subjects; of one that several files share, each record tells."""
        self._rows = rows

    def __len__(self) -> int:
        return len(self.slugs)

    @overload
    def __getitem__(self, index: int) -> Subject: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Subject]: ...

    def __getitem__(self, index: int | slice) -> Subject | Sequence[Subject]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self.slugs)))]
        slug = self.slugs[index]
        settled = self._rows.settled.get(slug)
        if settled is None:
            path = self._rows.path(slug)
            return self._rows.make_subject(slug, slug, path, slug in self.hidden)
        return settled[index % len(self.slugs) - bisect_left(self.slugs, slug)]

    def __iter__(self) -> Iterator[Subject]:
        files, settled, hidden = self._rows.file_by_slug, self._rows.settled, self.hidden
        make_subject = self._rows.make_subject
        previous = None
        for slug in self.slugs:
            if slug not in settled:
                yield make_subject(slug, slug, _join(slug, files[slug]), slug in hidden)
            elif slug != previous:
                yield from settled[slug]
            previous = slug


def _join(slug: str, file: str) -> str:
    """Return the path of a row."""
    return file if "/" in file else slug[: slug.rfind("/") + 1] + file


def _propose_names(
    slug: str, paths: Sequence[str], is_hidden: IsHidden
) -> Iterator[tuple[str, str]]:
    """Name files that share a slug: one visible file keeps it, the others say more."""
    visible = [path for path in paths if not is_hidden(path)]
    for path in visible:
        yield path, slug if len(visible) == 1 else compose(path)
    dotted = {path: strip_extension(compose(path)) for path in paths if is_hidden(path)}
    times = Counter((slug, *dotted.values()))
    for path, name in dotted.items():
        yield path, name if times[name] == 1 else compose(path)
