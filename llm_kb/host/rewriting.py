"""Lets a model write a question in the words of an answer, before a search.

People ask in other words than texts answer in. A model that guesses the answer finds these words.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from llm_kb.knowledge_base.api import KnowledgeBase
from llm_kb.rendering.passages import Passages
from llm_kb.rendering.plain_text import bounded_line, shorten
from llm_kb.rendering.section import render_menu
from llm_kb.search.question import EmptyQuestionError
from llm_kb.texts.safe import defuse

MAX_ASKED = 2_000
"""Maximum number of characters of a question that a model is sent."""

MAX_WRITTEN = 1_000
"""Maximum number of characters of its answer that are searched for."""

_REQUEST = """\
Documentation is searched by words for the question below. Write what the passage that answers it \
is likely to say, so that the search finds it. First line: one sentence that could stand in that \
passage. Second line: up to ten other words it is likely to have, such as names of options, \
functions, settings, files or commands. Guess if you do not know. In the language of the question, \
without anything else."""


def render_request(kb: KnowledgeBase, question: str) -> str:
    """Return the request to a model: the question, and the menu."""
    parts = [_REQUEST]
    if (menu := kb.menu()).lines:
        parts.append(render_menu(menu))
    asked = question if len(question) <= MAX_ASKED else f"{question[: MAX_ASKED - 1]}…"
    return "\n\n".join([*parts, f"<question>\n{defuse(asked)}\n</question>"])


def search_rewritten(
    kb: KnowledgeBase, question: str, model: str | None, find: Callable[[str], Passages]
) -> tuple[Passages, str]:
    """Return what a search finds for a question as a model writes it, and a line about that.

    If that is nothing, the question itself is searched for.
    """
    written, note = rewrite_question(kb, question, model)
    found = None
    with suppress(EmptyQuestionError):
        found = find(written)
    if found is not None and (found.passages or written == question):
        return found, note
    return find(question), _say_plain(model, "an answer of which no text has a word")


def rewrite_question(
    kb: KnowledgeBase, question: str, model: str | None, seconds: float = 8
) -> tuple[str, str]:
    """Return a question as a model writes it, which is not logged, and a line about that.

    If the model fails, or takes longer than so many seconds, it is the question itself. The name
    None is llm's default model.
    """
    request = render_request(kb, question)
    answers: list[str] = []
    failures: list[str] = []

    def ask() -> None:
        try:
            answers.append(_ask(model, request))
        except Exception as error:  # noqa: BLE001 - a model of a plugin may raise anything
            failures.append(str(error).strip("'\"") or type(error).__name__)

    # A request cannot be ended; a thread that is a daemon does not keep the process.
    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    written = " ".join("".join(answers).split())[:MAX_WRITTEN]
    if any(map(str.isalnum, written)):
        return written, f"searched for: {bounded_line(written)}"
    took = f"no answer after {seconds} s" if asking.is_alive() else "an empty answer"
    reason = shorten(bounded_line("".join(failures)), 200) if failures else took
    return question, _say_plain(model, reason)


def _say_plain(model: str | None, reason: str) -> str:
    name = bounded_line(model) if model else "the default model"
    return f"searched for the question as it is; {name}: {reason}"


def _ask(model: str | None, request: str) -> str:
    """Return the answer of a model, which is in no log."""
    import llm  # noqa: PLC0415 - half of a second, which a search without a model does without

    return llm.get_model(model).prompt(request, stream=False).text()
