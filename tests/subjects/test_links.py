"""The subjects that a link may mean."""

from __future__ import annotations

from llm_kb.subjects.links import LinkTargets
from llm_kb.subjects.topics import Slug, Subject


def test_of_many_subjects_that_a_link_may_mean_the_same_are_named_each_time() -> None:
    """Those that come first backwards, since the names are kept so."""
    slugs = [Slug(f"{number:03}/page") for number in range(300)]
    subjects = [Subject(path=f"{slug}.md", slug=slug, name=slug) for slug in slugs]
    first = sorted(slugs, key=lambda slug: slug[::-1])[:100]
    assert LinkTargets(subjects).find("Page") == sorted(first)
