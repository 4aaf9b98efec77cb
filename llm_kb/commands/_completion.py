"""Shell completion of topics, subjects, config fragments and `kb:` references.

Completion runs while someone types, so an error offers nothing and prints nothing. Every
command imports this module; it imports its own dependencies only when completing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from llm_kb.subjects.topics import Catalog, Config, Topic

Topics: TypeAlias = "Sequence[tuple[Topic, Catalog]]"
Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

MOST_LOOKED_AT = 20_000
"""Most subjects read for one completion, so that it is there at once."""
MOST_OFFERED = 500


def _completes(narrow: Callable[[Topics, click.Context, str], list[CompletionItem]]) -> Complete:
    """Return a `shell_complete` callback for a function of the enabled topics."""

    @wraps(narrow)
    def complete(
        ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            return narrow(_open_topics(ctx), ctx, incomplete)
        except Exception:  # noqa: BLE001 - see the module's docstring
            return []

    return complete


def _open_topics(ctx: click.Context) -> Topics:
    from llm_kb.api import find_user_dir  # noqa: PLC0415
    from llm_kb.config.workspace import find_cwd  # noqa: PLC0415
    from llm_kb.knowledge_base.topics import open_catalogs  # noqa: PLC0415

    config = _load_config(tuple(ctx.params.get("kb_cfg") or ()))
    return list(open_catalogs(config, find_cwd(), find_user_dir()).values())


def _load_config(fragments: tuple[str, ...] = ()) -> Config:
    from llm_kb.commands._config import current_config  # noqa: PLC0415

    return current_config(fragments)


@_completes
def complete_topic(topics: Topics, _ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of the enabled topics."""
    return _offer_topics(topics, incomplete, "{}")


@_completes
def complete_slug(topics: Topics, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Offer the listed slugs of the topic given before, without hidden ones."""
    wanted = ctx.params.get("topic")
    return [
        CompletionItem(slug)
        for topic, catalog in topics
        if topic.id == wanted
        for slug in _find_slugs(catalog, incomplete)
    ]


@_completes
def complete_topic_slash_pattern(
    topics: Topics, _ctx: click.Context, incomplete: str
) -> list[CompletionItem]:
    """Offer topics; once only one fits, the whole topic and each of its slugs."""
    return _offer_slugs(topics, incomplete, everything=["**"])


@_completes
def complete_topic_slash_slug(
    topics: Topics, _ctx: click.Context, incomplete: str
) -> list[CompletionItem]:
    """Offer topics; once only one fits, its slugs."""
    return _offer_slugs(topics, incomplete)


@_completes
def complete_topic_slash(
    topics: Topics, _ctx: click.Context, incomplete: str
) -> list[CompletionItem]:
    """Offer topics, for a slug that does not exist yet."""
    return _offer_topics(topics, incomplete, "{}/")


@_completes
def complete_kb_fragment(
    topics: Topics, _ctx: click.Context, incomplete: str
) -> list[CompletionItem]:
    """Offer `kb:topic/pattern`, for the host's `-f`."""
    if not incomplete.startswith("kb:"):
        return [CompletionItem("kb:")] if "kb:".startswith(incomplete) else []
    offered = _offer_slugs(topics, incomplete.removeprefix("kb:"), everything=["**"])
    return [CompletionItem(f"kb:{item.value}", help=item.help) for item in offered]


@_completes
def complete_kb_template(
    topics: Topics, _ctx: click.Context, incomplete: str
) -> list[CompletionItem]:
    """Offer `kb:topic`, for the host's `-t`."""
    return _offer_topics(topics, incomplete, "kb:{}")


def complete_fragment(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the names of config fragments."""
    from llm_kb.config.fragments import list_fragments  # noqa: PLC0415

    try:
        names = list_fragments(_load_config().config_load_paths)
    except Exception:  # noqa: BLE001 - see the module's docstring
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _offer_topics(topics: Topics, incomplete: str, form: str) -> list[CompletionItem]:
    offered = (CompletionItem(form.format(topic.id), help=topic.title) for topic, _ in topics)
    return [item for item in offered if item.value.startswith(incomplete)]


def _offer_slugs(
    topics: Topics, incomplete: str, everything: Sequence[str] = ()
) -> list[CompletionItem]:
    """Offer topics, then slugs, with the patterns of `everything` before a slug begins."""
    wanted, slash, start = incomplete.partition("/")
    found = [
        (topic, catalog)
        for topic, catalog in topics
        if (topic.id == wanted if slash else topic.id.startswith(wanted))
    ]
    if len(found) != 1:
        return _offer_topics(found, "", "{}/")
    topic, catalog = found[0]
    slugs = [*(() if start else everything), *_find_slugs(catalog, start)]
    return [CompletionItem(f"{topic.id}/{slug}") for slug in slugs]


def _find_slugs(catalog: Catalog, start: str) -> list[str]:
    if "#" in start:
        return _find_parts(catalog, start)
    looked_at = islice(catalog.iter_listed(), MOST_LOOKED_AT)
    matching = (subject.name for subject in looked_at if subject.name.startswith(start))
    return sorted(islice(matching, MOST_OFFERED))


def _find_parts(catalog: Catalog, start: str) -> list[str]:
    """Return the parts of the listed subject named before the `#`."""
    from llm_kb.rendering.part_text import decode_exactly  # noqa: PLC0415
    from llm_kb.rendering.parts import find_parts  # noqa: PLC0415
    from llm_kb.subjects.selection import is_listed  # noqa: PLC0415

    slug = start.partition("#")[0]
    names = [
        f"{slug}#{part.anchor}"
        for subject in filter(is_listed, catalog.find(slug))
        for part in find_parts(decode_exactly(catalog.read(subject).data), subject.path)
    ]
    return [name for name in names if name.startswith(start)][:MOST_OFFERED]
