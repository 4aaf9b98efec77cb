"""Paths, ids and provenance as typed, for all `llm kb knowledge` commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem

from llm_kb.capture.emission import clean
from llm_kb.capture.entries import ANTI_PATTERN, STABILITIES, Kind, KnowledgeStore
from llm_kb.capture.likeness import (
    EVERYWHERE,
    filter_by_file,
    find_place_problem,
    without_stars,
)
from llm_kb.capture.store import load_store, read_snapshot, require_repository
from llm_kb.commands._config import require_cwd
from llm_kb.commands._options import complete_quietly

P = ParamSpec("P")
R = TypeVar("R")


_FIELD_OPTIONS = (
    click.option(
        "--scope", metavar="PATH", help="Convention: the directory or file it applies to, or *"
    ),
    click.option("--rule", metavar="TEXT", help="Convention: the rule"),
    click.option("--stability", type=click.Choice(STABILITIES), help="Convention: how firm it is"),
    click.option("--module", metavar="PATH", help="Boundary: the module's directory"),
    click.option("--owns", metavar="TEXT", help="Boundary: what the module is responsible for"),
    click.option("--boundary", metavar="TEXT", help="Boundary: what the module must not do"),
    click.option("--pattern", metavar="TEXT", help="Anti-pattern: what to avoid"),
    click.option("--instead", metavar="TEXT", help="Anti-pattern: what to do instead"),
)


def field_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add an option for each field of an entry."""
    for option in reversed(_FIELD_OPTIONS):
        command = option(command)
    return command


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


def parse_id(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return an id if it can be typed, listed and removed again."""
    if value is not None and (not value or not value.isprintable() or len(value.split()) != 1):
        raise click.BadParameter("an id is a single word")
    return value


def parse_provenance(kind: Kind, *, decided_in: str | None, learned_from: str | None) -> str | None:
    """Return the provenance of an entry; a name of the current commit becomes its id."""
    right, wrong, name, other = (
        (learned_from, decided_in, "--learned-from", "--decided-in")
        if kind is ANTI_PATTERN
        else (decided_in, learned_from, "--decided-in", "--learned-from")
    )
    if wrong is not None:
        raise click.UsageError(f"{other}: an entry of this type takes {name}")
    if right is not None and right.startswith(("HEAD", "@")):
        # It would name another commit tomorrow.
        return read_snapshot(require_cwd(), right).commit
    return None if right is None else clean(right)


@complete_quietly
def complete_id(_ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of this repository's entries, with their texts as help."""
    return [
        CompletionItem(entry.id, help=entry.rule)
        for entry in load_store(require_cwd()).entries
        if entry.id.startswith(incomplete)
    ]
