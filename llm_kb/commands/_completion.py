"""Shell completion of topics, slugs and config fragments.

It runs while someone types: whatever goes wrong, it offers nothing and says nothing.
Every command imports this module, so what completing needs is imported when it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from llm_kb.subjects.topics import Catalog, Config, Topic

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

MOST_LOOKED_AT = 20_000
"""Subjects looked at for one completion: nobody waits for more than that."""
MOST_OFFERED = 500


def _silent(complete: Complete) -> Complete:
    @wraps(complete)
    def wrapper(
        ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            return complete(ctx, _param, incomplete)
        except Exception:  # noqa: BLE001 - see the module's docstring
            return []

    return wrapper


@_silent
def complete_topic(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the ids of the enabled topics."""
    return [
        CompletionItem(topic.id, help=topic.title)
        for topic, _ in _open(ctx)
        if topic.id.startswith(incomplete)
    ]


@_silent
def complete_slug(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the listed slugs of the topic given before; never a hidden one."""
    wanted = ctx.params.get("topic")
    catalogs = [catalog for topic, catalog in _open(ctx) if topic.id == wanted]
    return [CompletionItem(slug) for slug in _slugs(catalogs[0], incomplete)] if catalogs else []


@_silent
def complete_topic_slash_pattern(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer topics, then all and each of the slugs of the one topic it can only be."""
    return _offer_slugs(ctx, incomplete, everything=["**"])


@_silent
def complete_topic_slash_slug(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer topics, then the slugs of the one topic it can only be."""
    return _offer_slugs(ctx, incomplete)


@_silent
def complete_topic_slash(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer topics, for a slug that is not there yet."""
    offered = (CompletionItem(f"{topic.id}/", help=topic.title) for topic, _ in _open(ctx))
    return [item for item in offered if item.value.startswith(incomplete)]


def _offer_slugs(
    ctx: click.Context, incomplete: str, everything: Sequence[str] = ()
) -> list[CompletionItem]:
    """Offer topics, then slugs; `everything` are patterns to offer before a slug begins."""
    wanted, slash, start = incomplete.partition("/")
    found = [
        (topic, catalog)
        for topic, catalog in _open(ctx)
        if (topic.id == wanted if slash else topic.id.startswith(wanted))
    ]
    if len(found) != 1:
        return [CompletionItem(f"{topic.id}/", help=topic.title) for topic, _ in found]
    topic, catalog = found[0]
    slugs = [*(() if start else everything), *_slugs(catalog, start)]
    return [CompletionItem(f"{topic.id}/{slug}") for slug in slugs]


@_silent
def complete_fragment(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the config fragments that have a name."""
    from llm_kb.config.fragments import list_fragments  # noqa: PLC0415

    names = list_fragments(_load().config_load_paths)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _load(fragments: tuple[str, ...] = ()) -> Config:
    from llm_kb.commands._config import current_config  # noqa: PLC0415

    return current_config(fragments)


def _open(ctx: click.Context) -> Iterator[tuple[Topic, Catalog]]:
    from llm_kb.commands._config import user_dir  # noqa: PLC0415
    from llm_kb.config.workspace import find_cwd  # noqa: PLC0415
    from llm_kb.knowledge_base import open_catalogs  # noqa: PLC0415

    config = _load(tuple(ctx.params.get("kb_cfg") or ()))
    pairs = open_catalogs(config, find_cwd(), user_dir())
    return ((topic, catalog) for topic, catalog in pairs if topic.enable)


def _slugs(catalog: Catalog, start: str) -> list[str]:
    looked_at = islice(catalog.iter_listed(), MOST_LOOKED_AT)
    matching = (subject.name for subject in looked_at if subject.name.startswith(start))
    return sorted(islice(matching, MOST_OFFERED))
