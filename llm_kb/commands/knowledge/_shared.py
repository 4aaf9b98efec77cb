"""Fields, paths and ids as typed, for all `llm kb knowledge` commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem

from llm_kb.capture import entries
from llm_kb.capture.emission import InvalidEntryError
from llm_kb.capture.store import load_store, require_repository
from llm_kb.commands._config import require_cwd
from llm_kb.commands._options import complete_quietly

P = ParamSpec("P")
R = TypeVar("R")

_FIELDS = {
    "rule": "Convention: the rule",
    "scope": "Convention: the directory or file it applies to, or *",
    "stability": "Convention: how firm it is",
    "module": "Boundary: the module's directory",
    "owns": "Boundary: what the module is responsible for",
    "boundary": "Boundary: what the module must not do",
    "pattern": "Anti-pattern: what to avoid",
    "instead": "Anti-pattern: what to do instead",
}


def field_options(*left_out: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that adds an option for each field of an entry to a command."""

    def decorate(command: Callable[P, R]) -> Callable[P, R]:
        for name, text in reversed(_FIELDS.items()):
            if name not in left_out:
                kind = click.Choice(entries.STABILITIES) if name == "stability" else None
                metavar = "PATH" if name in {"scope", "module"} else None
                command = click.option(f"--{name}", metavar=metavar, type=kind, help=text)(command)
        return command

    return decorate


@contextmanager
def explaining(**names: str) -> Iterator[None]:
    """Turn an InvalidEntryError into a usage error, which names what was typed.

    `names` has the arguments of those fields that are not options.
    """
    try:
        yield
    except InvalidEntryError as error:
        split = (problem.partition(":") for problem in error.problems)
        typed = (f"{names.get(name, f'--{name}')}:{problem}" for name, _, problem in split)
        message = "; ".join(typed).replace("anti_pattern", "anti-pattern")
        raise click.UsageError(message) from error


scope_option = click.option(
    "--scope", metavar="FILE", help="Only entries that apply to this file or directory"
)


def narrow(store: entries.KnowledgeStore, scope: str | None) -> entries.KnowledgeStore:
    """Return the entries that apply to a file as typed; all entries without one."""
    return store if scope is None else store.narrow(find_place(scope))


def find_place(typed: str) -> str:
    """Return a path, typed relative to the current directory, relative to the repository's root.

    Stars alone and the root itself mean everything.
    """
    if not set(typed) - {"*", "/"}:
        return entries.EVERYWHERE
    here = require_cwd()
    root = require_repository(here).root
    place = os.path.relpath(here / typed.strip(), root).replace(os.sep, "/")
    if entries.is_outside(place):
        raise click.UsageError(f"{typed!r} is outside the repository, {str(root)!r}")
    place = entries.plain_place(f"{place}/" if typed.endswith("/") else place)
    problem = None if (root / place).exists() else entries.find_pattern_problem(place)
    if problem:
        raise click.UsageError(f"{typed!r} {problem}")
    return place


@complete_quietly
def complete_id(_ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of this repository's entries, with their texts as help."""
    return [
        CompletionItem(entry.id, help=entry.rule)
        for entry in load_store(require_cwd()).entries
        if entry.id.startswith(incomplete)
    ]
