"""The keys of a configuration, the layers that set them, and the merging of layers.

`TABLES` lists the keys; no other module does. Their defaults are those of `Config`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from llm_kb import addons, hookspecs
from llm_kb.config.settings import Config, Layer, Origin, Setting, Value
from llm_kb.config.workspace import expand_home, find_foreign_owner
from llm_kb.errors import ConfigError, KbError, PatternError, quote
from llm_kb.files import fields
from llm_kb.files.containment import resolve_links
from llm_kb.files.fields import BadValueError, Fields, describe
from llm_kb.files.layouts import MAX_LEVELS
from llm_kb.subjects.ignore import is_private
from llm_kb.subjects.patterns import parse_pattern
from llm_kb.subjects.topics import Layout

TOPIC_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
TOPIC_ID_RULE = "up to 100 letters, digits, '.', '_' and '-', starting with a letter or a digit"

MAX_TOPICS = 1_000
"""The most topics of one configuration."""

MAX_DIRECTORY = 4_096
"""The most characters of a directory's path, as systems have it."""

MOST_WORK = 5_000
"""The most work that a configuration file may cause for each file of a directory: what the topics
that have it count together, and the values of their lists."""

TOPIC_WORK = 250
"""What a topic counts, which lists, reads and indexes its files for itself."""

_SIGNS = re.compile(r"[*?\[#]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSource:
    """The origin of a layer, which decides the directories that it may name."""

    origin: Origin
    base: Path = Path("/")
    """The directory that relative paths start from."""
    bounds: Path | None = None
    """The workspace, if the layer is one of its files; None for the user's own files."""
    owned_below: Path | None = None
    """The workspace, if its files must belong to the user; None if it is trusted."""
    allowed: tuple[Path, ...] = ()
    """The directories outside the workspace to which the user lets its links lead."""

    @property
    def path(self) -> Path:
        """The file of the layer."""
        return Path(self.origin.place or "")


Settings: TypeAlias = Mapping[str, Setting]
"""Settings by dotted key: `kb.menu`, `kb.topic.project.learned`."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the configuration, with the reader of its value."""

    read: Callable[..., Any]
    is_list: bool = False
    """Whether its value is a list, of which `read` reads each item."""
    user_only: bool = False
    """Whether only the user layer may set it."""
    replaces: bool = False
    """Whether a list of a higher layer replaces it, and does not extend it."""
    work: int = 1
    """What a value of the list counts: more for a walk of files than for a comparison."""
    is_place: bool = False
    """Whether `read` also takes the source of the layer."""
    default: Value = ()
    """Its value where nothing sets it, if it is a key of an add-on."""
    acts: str = ""
    """What it does in requests that do not ask for it; that of a workspace then needs trust."""


def read_pattern(value: object) -> str:
    """Read a pattern over slugs."""
    text = fields.read_line(value)
    try:
        return parse_pattern(text).text
    except PatternError as error:
        raise BadValueError(describe(value), f"a pattern over slugs ({error.reason})") from error


def read_directory(value: object, source: LayerSource) -> str:
    """Read a directory and return its absolute path with links resolved.

    A file of the workspace may only name directories inside the workspace.
    """
    place = _read_place(value, source)
    try:
        path = _check_size(value, resolve_links(place))
        bounds = source.bounds and resolve_links(source.bounds)
        bounds = next(filter(path.is_relative_to, source.allowed), bounds)
    except KbError as error:
        raise BadValueError(describe(value), f"a directory ({error})") from error
    if bounds and not path.is_relative_to(bounds):
        raise BadValueError(
            f"{describe(value)}, which leads to {str(path)!r}",
            f"a directory inside the workspace {str(source.bounds)!r}; `allow_links_to` under [kb]"
            " of your own kb.toml permits another one",
        )
    if bounds and any(map(is_private, path.relative_to(bounds).parts)):
        raise BadValueError(
            f"{describe(value)}, which leads to {str(path)!r}",
            "a directory whose files can be subjects (those of version control, and those with"
            " passwords, are never subjects)",
        )
    owner = find_foreign_owner(path) if source.owned_below else None
    if owner is not None:
        raise BadValueError(
            f"{describe(value)}, which belongs to another user (uid {owner})",
            "a directory of your own; make it yours with chown, or configure it with --user",
        )
    return str(path)


def read_load_path(value: object, source: LayerSource) -> str:
    """Read a directory of config fragments; a relative one belongs to the workspace."""
    _read_place(value, source)
    return expand_home(str(value))


def _read_place(value: object, source: LayerSource) -> Path:
    if not isinstance(value, str) or not value or fields.CONTROL.search(value) or "\n" in value:
        raise BadValueError(describe(value), "a directory, as a string of one line")
    parts = re.split(r"[/\\]", value)
    leaves = parts[0] == "" or ".." in parts or re.match(r"~|[A-Za-z]:", value)
    if source.bounds is not None and leaves:
        raise BadValueError(
            describe(value),
            "a relative path inside the workspace, without '~' or '..' "
            "(other directories belong in the user layer's kb.toml: 'llm kb add --user')",
        )
    return _check_size(value, source.base / expand_home(value))


def _check_size(value: object, path: Path) -> Path:
    """Return a path that can exist, since its levels and its length multiply."""
    if len(path.parts) > MAX_LEVELS or len(str(path)) > MAX_DIRECTORY:
        found = f"{describe(value)}, {len(path.parts):,} levels, {len(str(path)):,} characters"
        allowed = f"at most {MAX_LEVELS} levels and {MAX_DIRECTORY:,} characters"
        raise BadValueError(found, allowed)
    return path


def _read_search(value: object) -> bool | str:
    if isinstance(value, bool) or value == "auto":
        return value
    raise BadValueError(describe(value), '"auto", true or false')


def _choice(*choices: str) -> Callable[[object], str]:
    return partial(fields.read_choice, choices=choices)


TOPIC = "kb.topic"

TABLES: Mapping[str, Mapping[str, Key]] = {
    "kb": {
        "auto": Key(
            fields.read_flag,
            acts="send its section, and offer learn, on every prompt and chat here",
        ),
        "guides": Key(fields.read_flag),
        "menu": Key(_choice("topics", "subjects")),
        "max_result_chars": Key(fields.read_count),
        "search": Key(_read_search),
        "embedding_model": Key(fields.read_line, user_only=True),
        "rewrite": Key(fields.read_line, user_only=True),
        "config_load_paths": Key(read_load_path, is_list=True, is_place=True, work=TOPIC_WORK),
        "allow_links_to": Key(read_directory, is_list=True, user_only=True, is_place=True),
    },
    "kb.check": {"ignore": Key(fields.read_line, is_list=True, work=10)},
    TOPIC: {
        "enable": Key(fields.read_flag),
        "title": Key(fields.read_line),
        "introduction": Key(fields.read_text),
        "description": Key(fields.read_text),
        "subjects": Key(read_directory, is_place=True),
        "learned": Key(read_pattern, is_list=True, work=10),
        "disabled": Key(read_pattern, is_list=True, work=4),
        "include": Key(fields.read_line, is_list=True, replaces=True),
        "ignore": Key(fields.read_line, is_list=True),
        "layout": Key(_choice(*(layout.value for layout in Layout))),
    },
}
"""The keys of each table; those of `kb.topic` are of each topic's table."""

SMALL_TABLES = tuple(name.removeprefix("kb.") for name in TABLES if name not in {"kb", TOPIC})
"""The tables below `kb` whose keys are fields of `Config`: `check_ignore`."""


@cache
def find_tables() -> Mapping[str, Mapping[str, Key]]:
    """Return the keys of each table, with those of add-ons."""
    tables = {name: dict(keys) for name, keys in TABLES.items()}
    taken = [f"{name}.{key}" for name, keys in TABLES.items() for key in keys]
    found = addons.gather(hookspecs.settings)
    for dotted, key in addons.name_each(
        found, lambda _, pair: (pair[0], replace(pair[1])), taken
    ).items():
        table, _, name = dotted.rpartition(".")
        tables.setdefault(table, {})[name] = key
    return tables


def find_effect(dotted: str) -> str:
    """Return what a setting does in requests that do not ask for it; empty if nothing."""
    table, _, name = dotted.rpartition(".")
    keys = find_tables().get(table) or find_tables()[TOPIC]
    return keys[name].acts if name in keys else ""


def topic_key(topic: str, field_name: str) -> str:
    """Return the dotted key of a topic's field."""
    return f"{TOPIC}.{topic}.{field_name}"


def by_topic(settings: Settings) -> dict[str, dict[str, Setting]]:
    """Return the settings of each topic, by its id and then by field."""
    topics: dict[str, dict[str, Setting]] = {}
    for key, setting in settings.items():
        if key.startswith(f"{TOPIC}."):
            id_, _, name = key.removeprefix(f"{TOPIC}.").rpartition(".")
            topics.setdefault(id_, {})[name] = setting
    return topics


def parse_layer(toml: Mapping[str, object], source: LayerSource) -> Settings:
    """Return the settings that a decoded TOML document makes.

    Raises one ConfigError with all problems of the document.
    """
    document = Fields(toml)
    kb = document.fields("kb")
    names = [name.removeprefix("kb.") for name in find_tables() if name not in {"kb", TOPIC}]
    tables = [kb, *map(kb.fields, names), *_list_topics(kb.fields("topic"))]
    where = source.origin.place or source.origin.layer.value
    settings: dict[str, Setting] = {}
    for table in tables:
        settings |= _read_keys(table, source)
    for key in sorted({"topic", *names, *TABLES["kb"]} & toml.keys()):
        document.has(key)
        document.report(key, f"unknown key; allowed: kb; did you mean 'kb.{key}'?")
    document.reject_unknown()
    if problems := [*document.problems, *_find_excess(settings)]:
        raise ConfigError(where, problems)
    return settings


def _find_excess(settings: Settings) -> Iterator[str]:
    """Yield a problem for each directory whose files would be too much work.

    A file in several topics is work for each of them, with the values of all their lists.
    """
    tables: dict[str, dict[str, Setting]] = {}
    for key, setting in settings.items():
        table, _, name = key.rpartition(".")
        tables.setdefault(table, {})[name] = setting
    work: Counter[str] = Counter()
    for table, given in tables.items():
        keys, place = find_tables().get(table, find_tables()[TOPIC]), table
        if table not in find_tables():
            place = str(given["subjects"].value) if "subjects" in given else table
            work[place] += TOPIC_WORK
        for name, setting in given.items():
            values = setting.value if isinstance(setting.value, tuple) else ()
            work[place] += sum(_weigh(keys[name], value) for value in values)
    for place in [*work]:
        total = sum(work.get(str(above), 0) for above in (place, *PurePath(place).parents))
        if total > MOST_WORK:
            yield (
                f"{place}: its topics and their lists count {total:,} for each file, a topic"
                f" {TOPIC_WORK} and a value from 1 to 100; allowed: {MOST_WORK:,}; a pattern such"
                " as 'drafts/**' stands for many"
            )


def _weigh(key: Key, value: str) -> int:
    """Return what a value of a list counts, by its wildcards and its length."""
    return key.work * (1 + min(len(_SIGNS.findall(value)), 8)) + len(value) // 50


def _list_topics(topics: Fields) -> list[Fields]:
    """Return the tables of topics, and report ids that are not valid."""
    if len(topics.table) > MAX_TOPICS:
        topics.report("", f"found {len(topics.table):,} topics; allowed: at most {MAX_TOPICS:,}")
        return []
    valid = [id_ for id_ in topics if TOPIC_ID.fullmatch(id_)]
    for id_ in sorted(topics.table.keys() - valid):
        topics.report("", f"found the topic id {quote(id_)}; allowed: {TOPIC_ID_RULE}")
    for id_ in (id_ for id_ in valid if topics.table[id_] == {}):
        topics.report(id_, "is empty; a topic needs the directory of its `subjects`")
    return list(map(topics.fields, valid))


def _read_keys(table: Fields, source: LayerSource) -> dict[str, Setting]:
    """Return the settings of a table by dotted key, and report what is wrong with it."""
    settings, keys = {}, find_tables().get(table.path, find_tables()[TOPIC])
    for name in table:
        value = _read_key(table, name, keys[name], source) if name in keys else None
        if value is not None:
            settings[table.place(name)] = Setting(value=value, origins=(source.origin,))
    table.reject_unknown(*keys)
    return settings


def _read_key(table: Fields, name: str, key: Key, source: LayerSource) -> Value | None:
    layer = source.origin.layer
    if key.user_only and layer is not Layer.USER:
        table.report(
            name,
            f"not allowed in the {layer.value} layer; "
            "it belongs in the user layer's kb.toml (`llm kb config` names it)",
        )
        return None
    read = partial(key.read, source=source) if key.is_place else key.read
    if key.is_list and not (layer is Layer.COMMAND_LINE and isinstance(table.table[name], str)):
        return table.texts(name, read)
    value: Value | None = table.get(name, read)
    return (value,) if key.is_list and isinstance(value, str) else value


def merge(layers: Iterable[Settings], *, extends: bool = False) -> Settings:
    """Return the settings of several layers, lowest first; the operation is associative.

    Lists of a higher layer extend lower ones, except for keys that replace unless `extends`.
    """
    merged: dict[str, Setting] = {}
    for layer in layers:
        for key, high in layer.items():
            low, value = merged.get(key, Setting(value=(), origins=())), high.value
            name = key.rpartition(".")[2] if key.startswith(f"{TOPIC}.") else ""
            replaces = not extends and name in TABLES[TOPIC] and TABLES[TOPIC][name].replaces
            if isinstance(low.value, tuple) and isinstance(value, tuple) and not replaces:
                value = tuple(dict.fromkeys((*low.value, *value)))
            merged[key] = Setting(value=value, origins=(*low.origins, *high.origins))
    return merged


def list_defaults() -> dict[str, Any]:
    """Return the default of every key by dotted key, except for those of topics."""
    config = Config()
    defaults = {f"kb.{name}": getattr(config, name, ()) for name in TABLES["kb"]}
    for table in SMALL_TABLES:
        keys = TABLES[f"kb.{table}"]
        defaults |= {f"kb.{table}.{name}": getattr(config, f"{table}_{name}") for name in keys}
    for table, keys in find_tables().items():
        if table != TOPIC:
            added = {f"{table}.{name}": key.default for name, key in keys.items()}
            defaults = added | defaults
    return defaults
