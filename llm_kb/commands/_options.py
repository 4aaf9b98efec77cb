"""Options that several commands share, and the completion of what is typed.

Help and completion import this module, which imports its own dependencies when completing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click
from click.shell_completion import CompletionItem

from llm_kb.search.roles import ROLES, Role, Scope

if TYPE_CHECKING:
    from llm_kb.subjects.topics import Catalog, Topic


Topics: TypeAlias = "Sequence[tuple[Topic, Catalog]]"
Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

MOST_LOOKED_AT = 20_000
"""Most subjects read for one completion, so that it is there at once."""
MOST_OFFERED = 500

ENDS_OF_INPUT = 1_000_000
"""Bytes of standard input that are kept of its beginning and of its end."""


def complete_quietly(find: Callable[[click.Context, str], list[CompletionItem]]) -> Complete:
    """Return a completion that offers nothing after an error: it runs while someone types."""

    def complete(
        ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            return find(ctx, incomplete)
        except Exception:  # noqa: BLE001 - see above
            return []

    return complete


def _open_topics(ctx: click.Context) -> Topics:
    """Return the enabled topics. What a completion needs is imported when it runs."""
    from llm_kb.commands._config import current_config  # noqa: PLC0415
    from llm_kb.config.workspace import find_cwd  # noqa: PLC0415
    from llm_kb.knowledge_base.topics import open_catalogs  # noqa: PLC0415
    from llm_kb.user_dir import find_user_dir  # noqa: PLC0415

    config = current_config(tuple(ctx.params.get("kb_cfg") or ()))
    return list(open_catalogs(config, find_cwd(), find_user_dir()).values())


def _find_slugs_of_topic(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return the listed slugs of the topic given before, without hidden ones."""
    wanted = ctx.params.get("topic")
    catalogs = [catalog for topic, catalog in _open_topics(ctx) if topic.id == wanted]
    return [CompletionItem(slug) for each in catalogs for slug in _find_slugs(each, incomplete)]


complete_topic = complete_quietly(lambda ctx, typed: _offer_topics(_open_topics(ctx), typed, "{}"))
complete_slug = complete_quietly(_find_slugs_of_topic)
# Once only one topic fits, its slugs are offered.
complete_topic_slash_slug = complete_quietly(
    lambda ctx, typed: _offer_slugs(_open_topics(ctx), typed)
)


def _offer_topics(topics: Topics, incomplete: str, form: str) -> list[CompletionItem]:
    offered = (CompletionItem(form.format(topic.id), help=topic.title) for topic, _ in topics)
    return [item for item in offered if item.value.startswith(incomplete)]


def _offer_slugs(topics: Topics, incomplete: str) -> list[CompletionItem]:
    """Offer topics, then slugs."""
    wanted, slash, start = incomplete.partition("/")
    found = [
        (topic, catalog)
        for topic, catalog in topics
        if (topic.id == wanted if slash else topic.id.startswith(wanted))
    ]
    if len(found) != 1:
        return _offer_topics(found, "", "{}/")
    topic, catalog = found[0]
    return [CompletionItem(f"{topic.id}/{slug}") for slug in _find_slugs(catalog, start)]


def _find_slugs(catalog: Catalog, start: str) -> list[str]:
    looked_at = islice(catalog.list().listed, MOST_LOOKED_AT)
    matching = (subject.name for subject in looked_at if subject.name.startswith(start))
    return sorted(islice(matching, MOST_OFFERED))


F = TypeVar("F", bound=Callable[..., Any])


def _read_query(ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> str:
    """Return the question of a search, which may be on standard input."""
    if ctx.resilient_parsing:
        return ""
    from llm_kb.host.terminal import is_terminal, read_ends_of_input  # noqa: PLC0415

    query = " ".join(words)
    if words == ("-",) or (not words and not is_terminal(sys.stdin)):
        query = read_ends_of_input(ENDS_OF_INPUT)
    if not words and not query:
        raise click.UsageError("Missing argument 'QUERY...'.", ctx)
    return query


query_argument = click.argument("query", nargs=-1, metavar="[QUERY]...", callback=_read_query)
"""The argument of a search: one text of all its words, or of standard input."""


def filter_options(command: F) -> F:
    """Add the options that narrow a search; `make_filters` reads them."""
    for option in (
        click.option(
            "tags", "--tag", multiple=True, metavar="TAG", help="Only topics with this tag"
        ),
        click.option(
            "paths",
            "--path",
            multiple=True,
            metavar="PATTERN",
            help="Only files in this directory, or that match",
        ),
        click.option(
            "roles",
            "--role",
            multiple=True,
            type=click.Choice(ROLES),
            help="Only files of this kind  [default: all, documentation first]",
        ),
    ):
        command = option(command)
    return command


def make_filters(roles: Sequence[str], paths: Sequence[str], tags: Sequence[str]) -> dict[str, Any]:
    """Return the search filters for the options of `filter_options`."""
    scope = Scope(roles=[Role(role) for role in roles], paths=paths) if roles or paths else None
    return {"scope": scope, "tags": tags}


def kb_cfg_option(function: F) -> F:
    """Add `--kb-cfg`, with the meaning it has on `llm prompt`."""
    return click.option(
        "kb_cfg",
        "--kb-cfg",
        multiple=True,
        metavar="NAME|FILE|KEY=VALUE",
        help="Config fragment or assignment for the knowledge base",
    )(function)


def knowledge_options(function: F) -> F:
    """Add `-k` and `--kb-cfg`, with the meaning they have on `llm prompt`."""
    return click.option(
        "-k",
        "--knowledge",
        multiple=True,
        metavar="TOPIC/PATTERN",
        help="Knowledge to pre-load into the system prompt",
        shell_complete=complete_topic_slash_slug,
    )(kb_cfg_option(function))
