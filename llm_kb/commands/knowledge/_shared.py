"""Paths, ids and provenance as typed, for all `llm kb knowledge` commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem

from llm_kb.capture.entries import (
    EVERYWHERE,
    STABILITIES,
    KnowledgeStore,
    filter_by_file,
    find_place_problem,
    without_stars,
)
from llm_kb.capture.store import load_store, require_repository
from llm_kb.commands._config import require_cwd
from llm_kb.commands._options import complete_quietly

P = ParamSpec("P")
R = TypeVar("R")


FIELD_OPTIONS = (
    click.option("--stability", type=click.Choice(STABILITIES), help="Convention: how firm it is"),
    click.option("--module", metavar="PATH", help="Boundary: the module's directory"),
    click.option("--owns", metavar="TEXT", help="Boundary: what the module is responsible for"),
    click.option("--boundary", metavar="TEXT", help="Boundary: what the module must not do"),
    click.option("--pattern", metavar="TEXT", help="Anti-pattern: what to avoid"),
    click.option("--instead", metavar="TEXT", help="Anti-pattern: what to do instead"),
)
RULE_OPTIONS = (
    click.option("--rule", metavar="TEXT", help="Convention: the rule"),
    click.option(
        "--scope", metavar="PATH", help="Convention: the directory or file it applies to, or *"
    ),
)


def with_options(
    *options: Callable[[Callable[P, R]], Callable[P, R]],
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that adds options to a command, in this order."""

    def decorate(command: Callable[P, R]) -> Callable[P, R]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


scope_option = click.option(
    "--scope", metavar="FILE", help="Only entries that apply to this file or directory"
)


def narrow(store: KnowledgeStore, scope: str | None) -> KnowledgeStore:
    """Return the entries that apply to a file as typed; all entries without one."""
    return store if scope is None else filter_by_file(store, find_place(scope))


def find_place(typed: str) -> str:
    """Return a path, typed relative to the current directory, relative to the repository's root.

    `*` and the root itself mean everything.
    """
    here = require_cwd()
    root = require_repository(here).root
    path = without_stars(typed.strip())
    if path == EVERYWHERE:
        return path
    place = os.path.relpath(here / path, root).replace(os.sep, "/")
    if place == ".":
        return EVERYWHERE
    if place.split("/")[0] == "..":
        raise click.UsageError(f"{typed!r} is outside the repository, {str(root)!r}")
    problem = find_place_problem(place, exists=os.path.lexists(here / path))
    if problem:
        raise click.UsageError(f"{typed!r} {problem}")
    # `dir/` covers only what is beneath, so the slash is part of the place.
    return place + "/" if path.endswith("/") else place


@complete_quietly
def complete_id(_ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of this repository's entries, with their texts as help."""
    return [
        CompletionItem(entry.id, help=entry.rule)
        for entry in load_store(require_cwd()).entries
        if entry.id.startswith(incomplete)
    ]
