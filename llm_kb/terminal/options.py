"""Options that several commands share, and the completion of what is typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from llm_kb.knowledge_base.kinds import OpenTopic

MOST_OFFERED = 500
"""Most slugs of one completion."""


def complete_quietly(find: Callable[[click.Context, str], list[Any]]) -> Callable[..., list[Any]]:
    """Return a completion that offers nothing after an error: it runs while someone types."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
        try:
            return find(ctx, incomplete)
        except Exception:  # noqa: BLE001 - see above
            return []

    return complete


def _open_topics(ctx: click.Context) -> Mapping[str, OpenTopic]:
    """Return the topics of menus by id."""
    from llm_kb.knowledge_base.api import KnowledgeBase  # noqa: PLC0415 - help does without

    kb = KnowledgeBase.discover(fragments=ctx.params.get("kb_cfg") or ())
    return {id_: opened for id_, opened in kb.topics.items() if opened.config.is_offered}


def _list_slugs(opened: OpenTopic, start: str) -> list[str]:
    """Return the listed slugs that begin so, without hidden ones."""
    slugs = (subject.name for subject in opened.topic.list().listed)
    return sorted(slug for slug in slugs if slug.startswith(start))[:MOST_OFFERED]


@complete_quietly
def complete_topic(ctx: click.Context, typed: str) -> list[CompletionItem]:
    """Complete the id of a topic."""
    topics = (opened.config for opened in _open_topics(ctx).values())
    return [CompletionItem(t.id, help=t.title) for t in topics if t.id.startswith(typed)]


@complete_quietly
def complete_address(ctx: click.Context, typed: str) -> list[str]:
    """Complete the id of a topic and, once only one fits, its slugs."""
    wanted, slash, start = typed.partition("/")
    topics = _open_topics(ctx)
    ids = [id_ for id_ in topics if (id_ == wanted if slash else id_.startswith(wanted))]
    if len(ids) != 1:
        return [f"{id_}/" for id_ in ids]
    return [f"{ids[0]}/{slug}" for slug in _list_slugs(topics[ids[0]], start)]


F = TypeVar("F", bound=Callable[..., Any])


def addresses_argument(*, required: bool) -> Callable[[F], F]:
    """Return the argument of a command that takes the names of subjects."""
    return click.argument(
        "addresses",
        nargs=-1,
        required=required,
        metavar="TOPIC[/PATTERN]..." if required else "[TOPIC[/PATTERN]]...",
        shell_complete=complete_address,
    )


kb_cfg_option = click.option(
    "kb_cfg",
    "--kb-cfg",
    multiple=True,
    metavar="NAME|FILE|KEY=VALUE",
    help="Config fragment or assignment for the knowledge base",
    hidden=True,
)
"""`--kb-cfg`, with the meaning it has on `llm prompt`, whose help has it."""

_knowledge_option = click.option(
    "-k",
    "--knowledge",
    multiple=True,
    metavar="TOPIC/PATTERN",
    help="Knowledge to pre-load into the system prompt",
    shell_complete=complete_address,
)


def knowledge_options(command: F) -> F:
    """Add `-k` and `--kb-cfg`, with the meaning they have on `llm prompt`."""
    return _knowledge_option(kb_cfg_option(command))
