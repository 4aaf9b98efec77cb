"""A pattern is refused, or its matchers agree with one another on any slug."""

from __future__ import annotations

from llm_kb.errors import PatternError
from llm_kb.subjects.patterns import compile_any, parse_pattern
from llm_kb.subjects.topics import slugify
from tests import brute_force


def fuzz(data: bytes) -> None:
    """Take the first line for a pattern and the rest for paths."""
    first, _, rest = data.decode("utf-8", "surrogateescape").partition("\n")
    try:
        pattern = parse_pattern(first)
    except PatternError:
        return
    matches = pattern.matches
    both = compile_any([pattern, parse_pattern("another")])
    for path in (first, *rest.split("\n")[:20]):
        slug = slugify(path)
        if not slug:
            continue  # no file has it
        found = bool(matches(slug))
        if len(first) < 20 and len(slug) < 50:
            assert found == brute_force.matches(first, slug), f"it is wrong about {slug!r}"
        assert bool(both(slug)) == (found or slug == "another"), f"the union disagrees on {slug!r}"
