"""Printing of results, content, JSON, messages and errors, made safe for a terminal.

Names, pages, subjects and models may hold escape codes and characters that reorder text.
A terminal shows these as codes; a pipe gets content byte for byte.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Sequence

import click

from llm_kb.errors import KbError, UnknownTopicError, find_similar
from llm_kb.terminal import screen
from llm_kb.texts.safe import UNUSABLE, visible_line, visible_text

_NOT_A_LINE_END = re.compile(rf"(?!\n){UNUSABLE.pattern}")


def say(text: str) -> None:
    """Print a message for people, on standard error."""
    click.echo(visible_text(text), err=True)


def show(text: str, *, nl: bool = True) -> None:
    """Print a result for people, which may be styled; the caller makes its parts safe."""
    click.echo(text.encode("utf-8", "backslashreplace").decode(), nl=nl)


def show_content(content: str | bytes, *, nl: bool = True) -> None:
    """Print content: byte for byte into a pipe or file, as `visible_text` on a terminal."""
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    if screen.is_terminal(sys.stdout):
        click.echo(visible_text(data.decode("utf-8", "backslashreplace")), nl=nl)
    else:
        # As bytes: click strips parts of a string, and the locale may lack characters.
        click.echo(data, nl=nl)


def show_json(value: object) -> None:
    """Print a value as indented JSON."""
    _show_json(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def show_json_document(document: bytes) -> None:
    """Print JSON that is already serialized, in any encoding that JSON allows."""
    _show_json(document.decode(json.detect_encoding(document), "replace"))


def _show_json(text: str) -> None:
    """Print JSON with its dangerous characters escaped; others stay as they are.

    Such characters can only be in strings, so the meaning does not change.
    """
    if not text.replace("\n", "").isprintable():  # a fast test, even for megabytes
        text = _NOT_A_LINE_END.sub(_escape, text)
    click.echo(text.encode(), nl=False)


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]


def confirm(question: str, *, yes: bool = False) -> None:
    """Ask on a terminal and abort on no; without a terminal require `-y`."""
    if not ask(question, yes=yes):
        raise click.Abort


def ask(question: str, *, yes: bool = False) -> bool:
    """Ask on a terminal and return the answer; without a terminal require `-y`."""
    if yes:
        return True
    if not screen.can_ask():
        raise click.ClickException(
            f"there is no terminal to ask on: {visible_line(question)} Pass -y to say yes"
        )
    return screen.confirm(visible_line(question))


def explain(
    error: Exception, ctx: click.Context, typed: str | None, commands: Sequence[str]
) -> Exception:
    """Return the host's error for an error of a command; unexpected errors stay unchanged.

    `typed` is the first argument if `list` ran because that argument is not a command.
    """
    if isinstance(error, OSError):  # that nothing else handled, such as a full disk
        _drop_unwritable()
        if error.errno == errno.EPIPE:
            return click.exceptions.Exit(0)  # its reader, such as `head`, has enough
        where = "" if error.filename is None else f": {str(error.filename)!r}"
        return click.ClickException(f"{error.strerror or error}{where}")
    # The tool of models is no command, but the first that somebody tries.
    shows = ["show --as-model"] if typed == "learn" else []
    similar = shows or (find_similar(typed, commands, most=3) if typed else [])
    near = " or ".join(f"'{ctx.command_path} {name}'" for name in similar)
    if isinstance(error, KbError):
        is_topic = near and isinstance(error, UnknownTopicError)
        more = f"\nDid you mean the command {near}?" if is_topic else ""
        return click.ClickException(visible_text(str(error)) + more)  # it may quote anything
    if isinstance(error, click.UsageError) and near:
        return click.UsageError(f"{typed!r} is not a command; did you mean {near}?", ctx)
    if typed and getattr(error, "message", "").startswith("Got unexpected extra argument"):
        advice = f"'{ctx.command_path} --help' lists them"
        return click.UsageError(f"{typed!r} is not a command; {advice}", ctx)
    return error


def _drop_unwritable() -> None:
    """Discard output that cannot be written; Python would retry at exit and end with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
