"""What this plugin takes from `llm` beyond its documented API, each in one function.

If a version of `llm` lacks one of these, a request that asks for nothing of ours goes on, with one
line if a template or a conversation may have asked; one that asks ends with one line. Nothing here
is imported or looked up before a request needs it.

what, and what for | without it
--- | ---
`llm.cli.load_template`: what a template asks for | templates bring nothing of ours
`llm.cli.template_dir`: a file that hides a saved template | it is not looked for
`llm.cli.load_conversation`, `_get_conversation_tools`: what `-c` goes on with | as above
arguments of the callbacks of `prompt` and `chat`: adding tools and fragments | an error
arguments `system`, `directory` of llm-coding-agent's `code`: its menu | it is left alone
`Template.model_copy`: a template whose tools are not useful here | an error
the text "Chain limit of ": a hint at `--cl` | the host's message as it is
`turns`, `turn_fragments`, `fragments` of the log: what was sent | `-c` leaves `learn` out
`messages`, `parts` of the log: `llm kb used` | an error
`llm.cli.logs_on`, `logs_db_path`, `llm.migrations.migrate`, `Response.log_to_db`: the log of
`capture` | a warning; what was captured stays

`plugin` takes `cli.get_command`, `params` and `callback` of a command, all of click, and registers
`llm.Tool` by name for tools that a request does not use. `knowledge_base/kinds` computes
`llm.user_dir()` itself and reads `default_embedding_model.txt` there, since importing `llm` takes
half a second; it takes `llm.get_embedding_model`. Everything else is the API that `llm` documents.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

from llm_kb.errors import MAX_PATH_SHOWN, KbError, quote

if TYPE_CHECKING:
    import sqlite3

    import llm

CHAIN_LIMIT = "Chain limit of "
"""The start of the host's error for too many rounds of tool calls."""

_FRAGMENTS = """
    select turns.id, turns.thread_id, fragments.source, fragments.content from turns
    join turn_fragments on turn_fragments.turn_id = turns.id
    join fragments on fragments.id = turn_fragments.fragment_id
    where substr(fragments.source, 1, ?) = ?
"""
_CALLS = """
    select results.tool_name, json_extract(calls.payload, '$.arguments'),
        json_extract(results.payload, '$.output'),
        json_type(results.payload, '$.exception') is not null from turns
    join messages on messages.hash = turns.parent_message_hash and messages.role = 'tool'
    join parts results on results.message_hash = messages.hash and results.type = 'tool_result'
    join parts calls on calls.message_hash = messages.parent_hash and calls.type = 'tool_call'
        and json_extract(calls.payload, '$.tool_call_id')
        = json_extract(results.payload, '$.tool_call_id')
    where turns.id = ? and results.tool_name in ('learn', 'search_knowledge')
    and json_type(calls.payload, '$.arguments') = 'object'
    and json_type(results.payload, '$.output') = 'text' order by results.position
"""
"""The calls whose answers a turn was sent, with these answers."""


class HostChangedError(KbError):
    """Something of `llm` that this plugin needs and that this version of it does not have."""

    def __init__(self, what: str) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - only for this error

        self.what = what
        super().__init__(
            f"this version of llm-kb does not fit llm {version('llm')}, which has no {what};"
            " update both: llm install -U llm llm-kb"
        )


def _take(module: str, name: str) -> Any:
    """Return an attribute of a module of the host. Raises HostChangedError."""
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise HostChangedError(f"{module}.{name}") from error


def load_templates(names: Sequence[str]) -> list[Any]:
    """Load templates as the host does. Raises its errors, and HostChangedError."""
    load = _take("llm.cli", "load_template")
    return [load(name) for name in names]


def load_saved_template(name: str) -> Any:
    """Load a template of the user's directory. Raises the host's errors, and HostChangedError."""
    (template,) = load_templates([str(_take("llm.cli", "template_dir")() / f"{name}.yaml")])
    return template


def load_conversation(arguments: MutableMapping[str, Any]) -> Any:
    """Load the conversation that a request continues. Raises HostChangedError."""
    return _take("llm.cli", "load_conversation")(
        arguments.get("conversation_id"),
        async_=bool(arguments.get("async_")),
        database=arguments.get("database"),
    )


def find_conversation_tools(conversation: Any, typed: Sequence[str]) -> list[str]:
    """Return the tools that a conversation brings back. Raises HostChangedError."""
    return list(_take("llm.cli", "_get_conversation_tools")(conversation, typed) or ())


def explain_argument(error: TypeError) -> HostChangedError | None:
    """Return the error for an argument that the host's callback does not take; else None.

    Such an error is raised by the call itself; one from inside of it is a model's or a plugin's.
    """
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    is_of_call = frames[-1].f_globals.get("__name__") == "llm_kb.plugin"
    name = str(error).partition("unexpected keyword argument ")[2]
    return HostChangedError(f"argument {name} of its commands") if name and is_of_call else None


def drop_tools(template: Any) -> Any:
    """Return a template without its tools. Raises HostChangedError."""
    if not hasattr(template, "model_copy"):
        raise HostChangedError("Template.model_copy")
    return template.model_copy(update={"tools": None})


class NoTools(tuple[str, ...]):
    """An empty tuple that is true, so that the host does not restore a conversation's tools."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


@contextmanager
def open_log(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the host's log for reading.

    Raises KbError if it is missing, locked, or of another version of `llm`, also for the queries
    in the block.
    """
    import sqlite3  # noqa: PLC0415 - few requests read the log

    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=2)) as log:
            yield log
    except sqlite3.Error as error:
        shown = quote(str(path), MAX_PATH_SHOWN)
        raise KbError(f"the log of llm, {shown}, cannot be read: {error}") from error


def list_fragments(
    log: sqlite3.Connection, start: str, condition: str = "", *values: str
) -> Iterator[tuple[str, str, str, str]]:
    """Yield turn, conversation, source and text of each fragment whose source begins so.

    `condition` is the end of the `where` clause, for the `values`.
    """
    query = f"{_FRAGMENTS} {condition} order by turns.id"
    yield from log.execute(query, (len(start), start, *values))


def list_calls(log: sqlite3.Connection, turn: str) -> Iterator[tuple[str, str, str, bool]]:
    """Yield tool, arguments as JSON, answer, and whether it failed, of a turn's calls of ours."""
    yield from log.execute(_CALLS, (turn,))


def log_responses(responses: Sequence[llm.Response]) -> None:
    """Log responses as `llm prompt` does, if logging is on. Raises HostChangedError and others."""
    if not _take("llm.cli", "logs_on")():
        return
    path = _take("llm.cli", "logs_db_path")()
    migrate = _take("llm.migrations", "migrate")
    import sqlite_utils  # noqa: PLC0415 - start-up time

    with closing(sqlite_utils.Database(path)) as database:
        migrate(database)
        for response in responses:
            response.log_to_db(database)
