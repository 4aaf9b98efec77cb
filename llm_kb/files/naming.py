"""The names of subjects: their slugs, or more of the path where files share a slug. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from llm_kb.subjects.spelling import compose, strip_extension
from llm_kb.subjects.topics import Subject, Visibility


def name_subjects(subjects: Sequence[Subject]) -> list[Subject]:
    """Return subjects sorted by slug, each with a unique name."""
    if len({subject.slug for subject in subjects}) < len(subjects):
        names = _choose_names(subjects)
        subjects = [subject._replace(name=names[subject.path]) for subject in subjects]
    return sorted(subjects)


def _choose_names(subjects: Sequence[Subject]) -> dict[str, str]:
    """Return a unique name for each subject, keyed by path."""
    by_slug: dict[str, list[Subject]] = {}
    for subject in subjects:
        by_slug.setdefault(subject.slug, []).append(subject)
    names: dict[str, str] = {}
    for slug, sharing in by_slug.items():
        names.update(
            _propose_names(slug, sharing) if len(sharing) > 1 else [(sharing[0].path, slug)]
        )
    while clashing := _find_clashes(names):
        for path in clashing:
            written = compose(path)
            names[path] = written if names[path] != written else path
    return names


def _find_clashes(names: dict[str, str]) -> list[str]:
    """Return the paths whose name is not unique and can be made longer."""
    times = Counter(names.values())
    return [path for path, name in names.items() if times[name] > 1 and name != path]


def _propose_names(slug: str, sharing: Sequence[Subject]) -> Iterator[tuple[str, str]]:
    """Yield path and name of files that share a slug; a single visible file keeps it."""
    visible = [s.path for s in sharing if s.visibility is Visibility.LISTED]
    for path in visible:
        yield path, slug if len(visible) == 1 else compose(path)
    hidden = [s.path for s in sharing if s.visibility is Visibility.HIDDEN]
    dotted = {path: strip_extension(compose(path)) for path in hidden}
    times = Counter((slug, *dotted.values()))
    for path, name in dotted.items():
        yield path, name if times[name] == 1 else compose(path)
