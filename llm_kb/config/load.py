"""Loads the layers of a directory's configuration, with config fragments, and resolves them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llm_kb import errors
from llm_kb.config import layers, trust, workspace
from llm_kb.config.layers import TOPIC, LayerSource, Settings, by_topic, merge, topic_key
from llm_kb.config.settings import Config, Layer, Origin, Setting
from llm_kb.errors import ConfigError, KbError, UnknownTopicError
from llm_kb.files.containment import resolve_links
from llm_kb.files.fields import TomlError, decode_toml, suggest
from llm_kb.files.walk import iter_files
from llm_kb.subjects.topics import Kind, Layout, TopicConfig

SUFFIX = ".toml"
LOAD_PATH = ".llm/config.d"
"""The directory, in the workspace, in which config fragments are always looked for."""


def read_layers(
    cwd: Path | None, *, user_dir: Path, environ: Mapping[str, str], any_owner: bool = False
) -> trust.Layers:
    """Read the user's and the workspace's file; a missing one has no settings.

    A workspace's file of another user is read if it is trusted, with the settings it has now, or
    with `any_owner`. Raises ConfigError.
    """
    below = read_layer(user_source(user_dir))
    file = workspace.find_workspace(cwd, environ, user_dir=user_dir)
    if file is None:
        return trust.Layers(below=below, workspace={}, file=None)
    allowed = below.get("kb.allow_links_to")
    links = tuple(map(Path, allowed.value)) if allowed and isinstance(allowed.value, tuple) else ()
    source = replace(find_source(file, user_dir), allowed=links)
    if any_owner:
        source = replace(source, owned_below=None)
    foreign = workspace.describe_foreign(file, source.base)
    found = trust.Layers(below=below, workspace=read_layer(source), file=file, foreign=foreign)
    if foreign and not any_owner and not trust.is_trusted(file, found.digest, user_dir):
        source = replace(source, owned_below=source.base)  # which refuses it
        return replace(found, workspace=read_layer(source))
    return found


def read_layer(source: LayerSource) -> Settings:
    """Read a configuration file; a missing one has no settings. Raises ConfigError."""
    return _parse_file(source) if os.path.lexists(source.path) else {}


def _parse_file(source: LayerSource) -> Settings:
    data = workspace.read_bytes(source.path, owned_below=source.owned_below)
    return layers.parse_layer(workspace.decode_bytes(data, source.path), source)


def user_source(user_dir: Path) -> LayerSource:
    """Return the source of the user layer's file."""
    origin = Origin(layer=Layer.USER, place=str(workspace.user_config_path(user_dir)))
    return LayerSource(origin=origin, base=user_dir)


def find_source(file: Path, user_dir: Path) -> LayerSource:
    """Return the source of a workspace layer's file, whose owner no longer matters if trusted."""
    root = file.parent
    owned_below = None if trust.is_accepted(file, user_dir) else root
    origin = Origin(layer=Layer.WORKSPACE, place=str(file))
    return LayerSource(origin=origin, base=root, bounds=root, owned_below=owned_below)


def load_config(  # noqa: PLR0913 - each is one thing that the configuration depends on
    cwd: Path | None,
    *,
    user_dir: Path,
    environ: Mapping[str, str],
    fragments: Sequence[str] = (),
    excluded: Sequence[str] = (),
    given: Sequence[Kind] = (),
) -> Config:
    """Load all layers and return the effective configuration.

    `cwd` is None if the current directory was deleted. `fragments` are the values of
    `--kb-cfg`, in order; `excluded` are what `list_exclusions` returned for an earlier
    configuration, without those of topics that are gone. `given` are the kinds of topics that
    need no configuration. Raises KbError.
    """
    found = read_layers(cwd, user_dir=user_dir, environ=environ)
    withheld, file = found.withheld, found.file
    if file and withheld and trust.is_trusted(file, found.digest, user_dir):
        withheld = ()
    merged = merge([found.below, _without(found.workspace, withheld)])
    base = file.parent if file else (cwd or user_dir)
    own = LayerSource(origin=Origin(layer=Layer.COMMAND_LINE), base=base)
    for text in excluded:
        layer = parse_assignment(text, own)
        if all(id_ in by_topic(merged) or find_kind(id_, given) for id_ in by_topic(layer)):
            merged = merge([merged, layer])
    for text in fragments:
        if _ASSIGNMENT.fullmatch(text):
            merged = assign(merged, text, own)
        else:
            # As written; relative ones belong to the workspace.
            places = (LOAD_PATH, *_given(merged, "kb").get("config_load_paths", ()))
            path = find_fragment(text, cwd or base, [base / place for place in places])
            merged = _add_fragment(merged, path, own, found)
    return resolve(merged, file=file, withheld=withheld, given=given)


def _without(settings: Settings, keys: Collection[str]) -> Settings:
    return {key: setting for key, setting in settings.items() if key not in keys}


# A key has no slash, so that `conf/a=b.toml` stays a path.
_ASSIGNMENT = re.compile(r"[\w.\"'\s-]+\+?=.*", re.DOTALL)


def assign(merged: Settings, text: str, own: LayerSource) -> Settings:
    """Merge an assignment: KEY=VALUE replaces a list, KEY+=VALUE extends it. Raises ConfigError."""
    layer, is_extended = parse_assignment(text, own), text.partition("=")[0].endswith("+")
    lists = {key for key, each in layer.items() if isinstance(each.value, tuple)}
    if is_extended and layer.keys() - lists:
        raise ConfigError(_name(text), ["only a list can be extended with '+='; use '='"])
    below = merged if is_extended else _without(merged, lists)
    return merge([below, layer], extends=is_extended)


def parse_assignment(text: str, own: LayerSource) -> Settings:
    """Return the layer of an assignment, whose value is TOML or else a string without quotes.

    Raises ConfigError.
    """
    source = replace(own, origin=Origin(layer=Layer.COMMAND_LINE, place=_name(text)))
    key, _, value = text.partition("=")
    key, quoted = key.removesuffix("+"), json.dumps(value.strip(), ensure_ascii=False)
    try:
        document = decode_toml(f"{key} = {value}")
    except TomlError:
        try:
            document = decode_toml(f"{key} = {quoted}")
        except TomlError as error:
            raise ConfigError(_name(text), [f"is not valid TOML: {error}"]) from error
    return layers.parse_layer(document, source)


def _name(assignment: str) -> str:
    return f"--kb-cfg {errors.cut(assignment, errors.MAX_PATH_SHOWN)}"


def _add_fragment(merged: Settings, path: Path, own: LayerSource, found: trust.Layers) -> Settings:
    """Merge a config fragment.

    A file inside the workspace may set what the workspace's own file may, a file elsewhere what
    the user may. Raises ConfigError.
    """
    source = replace(own, origin=Origin(layer=Layer.FRAGMENT, place=str(path)))
    root = found.file.parent if found.file else None
    # A link belongs to the workspace if either of its ends does.
    if root and (
        path.is_relative_to(root) or resolve_links(path).is_relative_to(resolve_links(root))
    ):
        source = replace(source, bounds=root, owned_below=None if found.foreign else root)
    layer = _parse_file(source)
    withheld: set[str] = set()
    if source.bounds:  # `auto` counts here: the user named the fragment
        keys = trust.find_withheld(layer, merged, resolve_links(source.bounds))
        withheld = {key for key in keys if key != trust.LIMIT_KEY and not layers.find_effect(key)}
    if withheld:
        reason = "your own topics are not this file's to show"
        problems = [f"{key}: {reason}; use -k or an assignment" for key in sorted(withheld)]
        raise ConfigError(str(path), problems)
    return merge([merged, layer])


def find_fragment(text: str, cwd: Path, load_paths: Sequence[Path]) -> Path:
    """Return the absolute path of the file that a name or a path stands for.

    A path ends in `.toml`, or begins with `/`, `./`, `../` or `~/`. Raises KbError for a name
    that no directory has.
    """
    if not text.strip() or "\0" in text:
        raise ConfigError(
            "--kb-cfg", [f"found {errors.quote(text)}; allowed: a name, a path or KEY=VALUE"]
        )
    if text.endswith(SUFFIX) or text.startswith(("/", "./", "../", "~/")):
        return Path(os.path.normpath(cwd / workspace.expand_home(text)))
    for directory in load_paths:
        path = Path(os.path.normpath(directory / f"{text}{SUFFIX}"))
        if os.path.lexists(path):
            return path
    files = (path for directory in load_paths for path, _ in iter_files(directory))
    known = sorted({path.removesuffix(SUFFIX) for path in files if path.endswith(SUFFIX)})
    searched = ", ".join(map(errors.show_place, load_paths)) or "no directory"
    raise KbError(
        f"unknown config fragment {errors.quote(text, errors.MAX_PATH_SHOWN)}; available:"
        f" {', '.join(known) or 'none'} (in {searched}){suggest(text, known)}"
    )


_PASSING = frozenset({Layer.FRAGMENT, Layer.COMMAND_LINE})
"""The layers of one run, which rarely define a topic."""


def list_exclusions(config: Config) -> Iterator[str]:
    """Yield the assignments that repeat what the config fragments of one run exclude."""
    for topic in (*config.topics, *config.adjustments):
        for name in trust.EXCLUDING:
            setting = config.settings.get(topic_key(topic.id, name))
            if setting and setting.origins[-1].layer in _PASSING and setting.value is not True:
                operator = "+=" if isinstance(setting.value, tuple) else "="
                written = json.dumps(setting.value, ensure_ascii=False)
                yield f'{TOPIC}."{topic.id}".{name}{operator}{written}'


def resolve(
    merged: Settings,
    *,
    file: Path | None = None,
    withheld: tuple[str, ...] = (),
    given: Sequence[Kind] = (),
) -> Config:
    """Return the effective configuration of merged layers.

    `given` are the kinds of topics that need no configuration. Raises ConfigError for another
    topic without `subjects`.
    """
    fields_of = by_topic(merged)
    _require_subjects(fields_of, given)
    general = _given(merged, "kb")
    general.pop("config_load_paths", None)
    links = tuple(map(Path, general.pop("allow_links_to", ())))
    if model := merged.get("kb.embedding_model"):
        general["embedding_model"] = model.value  # an empty one is none, and no default
    small = {
        f"{table}_{name}": value
        for table in layers.SMALL_TABLES
        for name, value in _given(merged, f"kb.{table}").items()
    }
    resolved = [_resolve_topic(id_, fields, links) for id_, fields in fields_of.items()]
    return Config(
        **general,
        **small,
        topics=tuple(topic for topic in resolved if "subjects" in fields_of[topic.id]),
        adjustments=tuple(topic for topic in resolved if "subjects" not in fields_of[topic.id]),
        workspace=file.parent if file else None,
        workspace_file=file,
        withheld=withheld,
        settings=merged,
    )


def _given(settings: Settings, table: str) -> dict[str, Any]:
    """Return the settings of a table by name, without empty texts."""
    found = {name: settings.get(f"{table}.{name}") for name in layers.TABLES[table]}
    return {name: each.value for name, each in found.items() if each and each.value != ""}


def _resolve_topic(
    id_: str, fields: Mapping[str, Setting], allow_links_to: tuple[Path, ...]
) -> TopicConfig:
    own = layers.TABLES[TOPIC]
    given: dict[str, Any] = {
        n: each.value for n, each in fields.items() if each.value != "" and n in own
    }
    given["root"] = Path(given.pop("subjects", ""))
    given["layout"] = Layout(given.get("layout", Layout.FILES))
    return TopicConfig(id=id_, allow_links_to=allow_links_to, **given)


def find_kind(id_: str, given: Sequence[Kind]) -> Kind | None:
    """Return the kind to which an id belongs without configuration; None if to none."""
    return next((kind for kind in given if kind.covers(id_)), None)


def _require_subjects(settings: Mapping[str, Mapping[str, Setting]], given: Sequence[Kind]) -> None:
    """Raise ConfigError for the topics that cannot be without `subjects`, named by their file."""
    problems: dict[str, list[str]] = {}
    for id_, fields in settings.items():
        origin = next(iter(fields.values())).origins[0]
        if "subjects" not in fields and (problem := _find_problem(id_, settings, given)):
            problems.setdefault(origin.place or origin.layer.value, []).append(problem)
    for where, found in problems.items():
        raise ConfigError(where, found)


def _find_problem(
    id_: str, settings: Mapping[str, Mapping[str, Setting]], given: Sequence[Kind]
) -> str | None:
    """Return why a topic cannot be without `subjects`.

    Those of some kinds can, some of them only in the user's own layers.
    """
    fields = settings[id_]
    setters = {origin.layer for setting in fields.values() for origin in setting.origins}
    if kind := find_kind(id_, given):
        for name in ("disabled", "include", "ignore", "layout"):
            # An empty list counts as unset: it remains after the last pattern is removed.
            if name in fields and fields[name].value:
                return (
                    f"{topic_key(id_, name)}: not for topic {id_!r}, whose subjects are not in a"
                    " directory of yours; 'enable = false' leaves all of it out"
                )
        if not kind.is_users or Layer.WORKSPACE not in setters:
            return None
    if setters <= _PASSING:
        return f"{TOPIC}.{id_}: {UnknownTopicError(id_, sorted(settings.keys() - {id_}))}"
    key = topic_key(id_, "subjects")
    return f"{key}: missing; topic {id_!r} needs the directory of its subjects"
