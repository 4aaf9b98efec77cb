"""What the subjects of a topic are called: their slugs, or more where files share one.

Rows stay light, a slug and a string each; a record is made when one is looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

from llm_kb.spelling import compose, strip_extension
from llm_kb.topics import Slug, Subject, Visibility

IsHidden = Callable[[str], bool]


class Rows:
    """The slugs of a topic as they are found, each with the file that has it.

    A file is held as its name if its directory's path is its slug's, as it nearly
    always is, and as its whole path otherwise.
    """

    def __init__(self, is_hidden: IsHidden) -> None:
        self._is_hidden = is_hidden
        self._files: dict[str, str] = {}
        self._shared: dict[str, list[str]] = {}
        self._directories: set[str] = set()

    def add(self, slugs: Sequence[str], files: Sequence[str], directory: str | None = None) -> None:
        """Add the files of a directory; give its slug if all of theirs start with it."""
        before = len(self._files)
        # Only directories of the same slug can share slugs, and those are rare.
        if directory is None or directory in self._directories:
            for slug, file in zip(slugs, files, strict=True):
                self._add_one(slug, file)
        else:
            self._directories.add(directory)
            self._files.update(zip(slugs, files, strict=True))
            if len(self._files) - before < len(slugs):
                self._share(slugs, files)

    def _share(self, slugs: Sequence[str], files: Sequence[str]) -> None:
        """Note which files of one directory share a slug."""
        times = Counter(slugs)
        for slug, file in zip(slugs, files, strict=True):
            if times[slug] > 1:
                self._shared.setdefault(slug, []).append(_join(slug, file))

    def _add_one(self, slug: str, file: str) -> None:
        if slug in self._files:
            first = _join(slug, self._files[slug])
            self._shared.setdefault(slug, [first]).append(_join(slug, file))
        else:
            self._files[slug] = file

    def clear(self) -> None:
        """Forget all files."""
        self._files, self._shared, self._directories = {}, {}, set()

    def settle(self, matches: Callable[[str], object] | None = None) -> Subjects:
        """Return the subjects in order; with `matches`, those whose slug it accepts."""
        settled = self._name_shared() if self._shared else {}
        order = sorted(self._files if matches is None else filter(matches, self._files))
        if settled:
            order = [slug for slug in order for _ in settled.get(slug, (None,))]
        return Subjects(order, self._files, settled, self._is_hidden)

    def _name_shared(self) -> dict[str, list[Subject]]:
        """Name the files that share a slug, and those whose slug such a name takes."""
        slugs = {path: slug for slug, paths in self._shared.items() for path in paths}
        names: dict[str, str] = {}
        for slug, paths in self._shared.items():
            names.update(_propose_names(slug, paths, self._is_hidden))
        while clashing := self._find_clashes(names, slugs):
            for path in clashing:
                written = compose(path)
                names[path] = written if names[path] != written else path
        settled: dict[str, list[Subject]] = {}
        for path in sorted(names, key=names.__getitem__):
            subject = _make_subject(slugs[path], names[path], path, self._is_hidden)
            settled.setdefault(slugs[path], []).append(subject)
        return settled

    def _find_clashes(self, names: dict[str, str], slugs: dict[str, str]) -> list[str]:
        """Return the files that must take a fuller name; bring in those not named so far."""
        owners: dict[str, list[str]] = {}
        for path, name in names.items():
            owners.setdefault(name, []).append(path)
        for name, paths in owners.items():
            if name in self._files and name not in self._shared:
                path = _join(name, self._files[name])
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

    def __init__(
        self,
        slugs: Sequence[str],
        files: Mapping[str, str],
        settled: Mapping[str, Sequence[Subject]],
        is_hidden: IsHidden,
    ) -> None:
        self.slugs = slugs
        """The slug of each; one that several files share stands there several times."""
        self._files = files
        self._settled = settled
        self._is_hidden = is_hidden

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
        settled = self._settled.get(slug)
        if settled is None:
            path = _join(slug, self._files[slug])
            return _make_subject(slug, slug, path, self._is_hidden)
        return settled[index % len(self.slugs) - bisect_left(self.slugs, slug)]

    def __iter__(self) -> Iterator[Subject]:
        files, settled, is_hidden = self._files, self._settled, self._is_hidden
        previous = None
        for slug in self.slugs:
            if slug not in settled:
                yield _make_subject(slug, slug, _join(slug, files[slug]), is_hidden)
            elif slug != previous:
                yield from settled[slug]
            previous = slug


def _make_subject(slug: str, name: str, path: str, is_hidden: IsHidden) -> Subject:
    visibility = Visibility.HIDDEN if is_hidden(path) else Visibility.LISTED
    return Subject(Slug(slug), name, path, visibility)


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
