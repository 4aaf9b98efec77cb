"""Settings written on a command line: `KEY=VALUE`, `KEY+=VALUE` and `TOPIC/PATTERN`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from llm_kb.config_keys import KB_KEYS, REFERENCE_KEYS, TOPIC_KEYS, Key, Speaker
from llm_kb.config_layers import LayerConfig, Setting, parse_layer, topic_key
from llm_kb.errors import ConfigError, PatternError, UnknownTopicError
from llm_kb.patterns import parse_pattern
from llm_kb.topics import Layer, Origin

# A key holds no slash, so that `conf/a=b.toml` stays a path.
_ASSIGNMENT = re.compile(r"\s*(?P<key>[\w.\"'\s-]+?)\s*(?P<operator>\+?=)(?P<value>.*)", re.DOTALL)


def is_assignment(text: str) -> bool:
    """Tell whether a config fragment is an assignment, not a name or a path."""
    return _ASSIGNMENT.fullmatch(text) is not None


def parse_assignment(text: str, speaker: Speaker) -> LayerConfig:
    """Read `KEY=VALUE` (a list replaces) or `KEY+=VALUE` (a list extends).

    The value is TOML; a string may stand without its quotes, which shells eat,
    and alone where a list is expected. Raises ConfigError.
    """
    found = _ASSIGNMENT.fullmatch(text)
    if found is None:
        raise ConfigError(text, ["not an assignment; write KEY=VALUE or KEY+=VALUE"])
    parts = _split_key(found["key"])
    key = _find_key(parts)
    if found["operator"] == "+=" and key is not None and not key.is_list:
        problem = f"{'.'.join(parts)}: only a list can be extended with '+='; use '='"
        raise ConfigError(speaker.origin.place or text, [problem])
    table = {parts[-1]: _parse_value(found["value"], key)}
    for part in reversed(parts[:-1]):
        table = {part: table}
    return parse_layer(table, speaker, replaces=found["operator"] == "=")


def split_knowledge(text: str) -> tuple[str, str]:
    """Return topic id and pattern of a value of `-k`; a topic alone means all of it.

    Raises PatternError.
    """
    topic, slash, pattern = text.partition("/")
    if slash and not pattern:
        raise PatternError(text, f"nothing follows the slash; {topic!r} alone means all of it")
    return topic, parse_pattern(pattern).text if slash else "**"


def parse_knowledge(text: str, topics: Sequence[str]) -> LayerConfig:
    """Return what a value of `-k` says: one more pattern to pre-load.

    Raises UnknownTopicError, PatternError.
    """
    topic, pattern = split_knowledge(text)
    if topic not in topics:
        raise UnknownTopicError(topic, sorted(topics))
    origins = (Origin(layer=Layer.COMMAND_LINE, place=f"-k {text}"),)
    learned = Setting(value=(pattern,), origins=origins)
    return LayerConfig(settings={topic_key(topic, "learned"): learned}, topics={topic: origins})


def _split_key(text: str) -> list[str]:
    """Split a dotted key; a topic's id may hold dots without being quoted."""
    parts = [part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", text)]
    if parts[:2] == ["kb", "topic"] and len(parts) > 4:
        return [*parts[:2], ".".join(parts[2:-1]), parts[-1]]
    return parts


def _find_key(parts: Sequence[str]) -> Key | None:
    tables: dict[int, Mapping[str, Key]] = {
        2: KB_KEYS,
        3: REFERENCE_KEYS if parts[1:2] == ["references"] else {},
        4: TOPIC_KEYS if parts[1:2] == ["topic"] else {},
    }
    return tables.get(len(parts), {}).get(parts[-1])


def _parse_value(text: str, key: Key | None) -> object:
    """Read a value as TOML, else take it as the string it is."""
    # Imported here: splitting `-k` needs no TOML reader.
    from llm_kb.toml_text import TomlError, decode_toml  # noqa: PLC0415

    raw = text.strip()
    try:
        table = decode_toml(f"value = {raw}")
    except TomlError:  # a bare string, as a shell leaves it
        table = {}
    value: object = table["value"] if table.keys() == {"value"} else raw
    if key is not None and key.is_text and not isinstance(value, str | list | dict):
        value = raw  # title=2026 is a title
    if key is not None and key.is_list and not isinstance(value, list):
        value = [value]
    return value
