"""Shows the effective configuration with its layers, and the settings that need trust."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from llm_kb.config.keys import TOPIC_KEYS
from llm_kb.config.layers import LayerConfig, iter_values, topic_key
from llm_kb.config.load import SHOWING_KEY
from llm_kb.errors import MAX_PATH_SHOWN, cut, show_place
from llm_kb.subjects.topics import Config, Layer, Origin, Topic

Plain: TypeAlias = "bool | int | str | list[str] | None"

WIDTH = 80

_DIRECTORIES = frozenset({"subjects", "config_load_paths"})
_TEXTS = frozenset({"title", "introduction", "description"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigValue:
    """One effective value with its origins: all that extended a list, or the last one."""

    table: str
    name: str
    value: Plain
    origins: tuple[Origin, ...]

    @property
    def is_default(self) -> bool:
        """Whether no layer above the defaults sets it."""
        return all(origin.layer is Layer.DEFAULT for origin in self.origins)

    def as_dict(self) -> dict[str, object]:
        """Return the record that `--json` prints."""
        last = self.origins[-1]
        return {
            "key": f"{self.table}.{self.name}",
            "value": self.value,
            "layer": last.layer.value,
            "place": last.place,
            "origins": [{"layer": o.layer.value, "place": o.place} for o in self.origins],
        }


def add_knowledge(config: Config, knowledge: Iterable[tuple[str, str]]) -> Config:
    """Return the configuration with the topics and patterns of `-k` in `learned`."""
    for id_, pattern in knowledge:
        topics = {topic.id: topic for topic in (*config.topics, *config.adjustments)}
        topic = topics.get(id_) or Topic(id=id_, root=Path())
        if pattern in topic.learned:
            continue
        topics[id_] = replace(topic, learned=(*topic.learned, pattern))
        configured = [each.id for each in config.topics]
        key = topic_key(id_, "learned")
        place = f"-k {cut(f'{id_}/{pattern}', MAX_PATH_SHOWN)}"
        origin = Origin(layer=Layer.COMMAND_LINE, place=place)
        config = replace(
            config,
            topics=tuple(topics[each] for each in configured),
            adjustments=tuple(t for each, t in topics.items() if each not in configured),
            origins={**config.origins, key: (*config.origins.get(key, ()), origin)},
        )
    return config


def list_values(config: Config) -> list[ConfigValue]:
    """Return every effective value, defaults included, table by table."""
    values = [_value(config, *each) for each in iter_values(config)]
    for topic in config.topics:
        values += _list_topic(config, topic, TOPIC_KEYS)
    for topic in config.adjustments:
        names = [name for name in TOPIC_KEYS if topic_key(topic.id, name) in config.origins]
        values += _list_topic(config, topic, names)
    return values


def _list_topic(config: Config, topic: Topic, names: Iterable[str]) -> Iterator[ConfigValue]:
    table = topic_key(topic.id, "").rstrip(".")
    for name in names:
        value = getattr(topic, "root" if name == "subjects" else name)
        yield _value(config, table, name, value)


def render_values(values: Sequence[ConfigValue], workspace: Path | None) -> str:
    """Render values as TOML with comments, followed by the file of each layer.

    Defaults are shown for `[kb]` alone, long texts are cut, and directories inside
    the workspace are shown relative to it.
    """
    shown = [v for v in values if v.table == "kb" or not v.is_default]
    lines: list[str] = []
    for table, group in groupby(shown, key=lambda value: value.table):
        rendered = [line for value in group for line in _render_value(value, workspace)]
        lines += [f"[{_header(table)}]", *rendered, ""]
    places = dict.fromkeys(
        (origin.layer.value, origin.place)
        for value in shown
        for origin in value.origins
        if origin.place
    )
    lines += [f"# {layer}: {show_place(place)}" for layer, place in places]
    return "\n".join(lines).rstrip()


def _value(config: Config, table: str, name: str, value: object) -> ConfigValue:
    origins = config.origins.get(f"{table}.{name}", (Origin(layer=Layer.DEFAULT),))
    return ConfigValue(table=table, name=name, value=_plain(value), origins=origins)


def _header(table: str) -> str:
    start, topic, id_ = table.partition("kb.topic.")
    return f'{start}{topic}"{id_}"' if "." in id_ else table


def _plain(value: object) -> Plain:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, tuple):
        return [str(item) for item in value]
    return value if isinstance(value, bool | int | str) else None


def _render_value(value: ConfigValue, workspace: Path | None) -> Iterator[str]:
    if value.value is None:
        return
    shown: Plain = value.value
    if value.name in _DIRECTORIES and workspace is not None:
        shown = _shorten(shown, workspace)
    origins = value.origins if isinstance(shown, list) else value.origins[-1:]
    comment = "# " + ", ".join(dict.fromkeys(origin.layer.value for origin in origins))
    line = f"{value.name} = {render_plain(shown)}"
    if len(line) > WIDTH and isinstance(shown, list):
        yield f"{value.name} = [  {comment}"
        yield from (f"    {render_plain(item)}," for item in shown)
        yield "]"
    elif len(line) + 2 + len(comment) <= WIDTH:
        yield f"{line:<40}  {comment}"
    else:
        yield comment
        yield line if len(line) <= WIDTH or value.name not in _TEXTS else f'{line[: WIDTH - 2]}…"'


def _shorten(value: Plain, workspace: Path) -> Plain:
    if isinstance(value, list):
        return [str(_shorten(item, workspace)) for item in value]
    path = Path(str(value))
    return path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else value


def render_plain(value: Plain | tuple[str, ...]) -> str:
    """Render a value as TOML on one line that is safe for a terminal."""
    shown = json.dumps(value, ensure_ascii=False)
    # Characters that move a cursor or reorder a line are escaped.
    return shown if shown.isprintable() else json.dumps(value)


def render_request(
    place: str,
    workspace: LayerConfig,
    below: LayerConfig,
    withheld: Sequence[str],
    foreign: str | None,
) -> str:
    """Render what needs trust in a workspace layer, with the effects."""
    lines = []
    if foreign:
        lines += [f"{show_place(place)}: {foreign}, who decides what models are given from it", ""]
    if withheld:
        lines += [f"{show_place(place)} asks for:", ""]
    for key in withheld:
        lines.append(f"  {key} = {render_plain(workspace.settings[key].value)}")
        lines.append(f"      {_meaning(key, below)}")
    topics = list(_iter_topics(workspace)) if foreign or "kb.auto" in withheld else []
    if topics:
        lines += ["", "Its topics:", "", *topics]
    return "\n".join(lines)


def render_withheld(config: Config) -> str:
    """Return the line about the skipped settings of an untrusted workspace."""
    return render_skipped(
        config.workspace_file, config.withheld, has_lost_trust=config.has_lost_trust
    )


def render_skipped(place: Path | None, keys: Sequence[str], *, has_lost_trust: bool = False) -> str:
    """Return the line about skipped settings, with the command that trusts them."""
    reason = "has changed since you trusted it" if has_lost_trust else "is not trusted"
    return (
        f"skipped from {show_place(place)}: {', '.join(keys)}. This"
        f" workspace {reason}: look at it with 'llm kb config', then run 'llm kb trust'."
    )


def render_notices(config: Config) -> Iterator[str]:
    """Yield the lines about a workspace for a request that asks for knowledge.

    They name its skipped settings, except for `auto`, which then makes no difference, and the
    user's topics whose directory it replaces.
    """
    if set(config.withheld) - {"kb.auto"}:
        yield render_withheld(config)
    replaced = [
        topic.id
        for topic in config.topics
        if {Layer.USER, Layer.WORKSPACE}
        <= {origin.layer for origin in config.origins[topic_key(topic.id, "subjects")]}
    ]
    if replaced:
        place = show_place(config.workspace_file)
        yield f"{', '.join(replaced)}: here with the subjects of {place}, not your own"


def _meaning(key: str, below: LayerConfig) -> str:
    if key == "kb.auto":
        return "send its section, and offer learn, on every prompt and chat here"
    if key == SHOWING_KEY:
        return "name your reference topics to models that are offered learn, and search them"
    if key == "kb.capture.offer":
        return "offer emit_knowledge, which writes to this repository's notes, beside learn"
    topic = key.rpartition(".")[0]
    directory = below.settings.get(f"{topic}.subjects")
    if directory is None:
        return f"change what a model sees of {topic.removeprefix('kb.topic.')}, which you adjusted"
    return f"change what a model sees of your own topic in {render_plain(directory.value)}"


def _iter_topics(workspace: LayerConfig) -> Iterator[str]:
    for id_ in workspace.topics:
        directory = workspace.settings.get(topic_key(id_, "subjects"))
        if directory is None:
            continue
        found = workspace.settings.get(topic_key(id_, "learned"))
        learned = found.value if found else None
        patterns = f" (pre-loads {render_plain(learned)})" if learned else ""
        yield f"  {id_}: {render_plain(directory.value)}{patterns}"
