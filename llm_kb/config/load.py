"""Loads the layers of a directory's configuration, with config fragments, and resolves them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from llm_kb.config.layers import (
    TABLES,
    TOPIC,
    LayerConfig,
    LayerSource,
    merge,
    parse_layer,
    topic_key,
)
from llm_kb.config.trust import (
    ACTING_KEYS,
    EXCLUDING,
    digest_workspace,
    find_withheld,
    is_accepted,
    is_trusted,
)
from llm_kb.config.workspace import (
    describe_foreign,
    exists,
    expand_home,
    find_workspace,
    owner_of,
    read_toml,
    user_config_path,
)
from llm_kb.errors import (
    MAX_PATH_SHOWN,
    ConfigError,
    KbError,
    UnknownTopicError,
    cut,
    quote,
    show_place,
)
from llm_kb.files.containment import resolve_links
from llm_kb.files.fields import suggest
from llm_kb.files.toml import TomlError, decode_toml
from llm_kb.files.walk import iter_files
from llm_kb.subjects.topics import (
    BUILT_IN_TOPICS,
    REFERENCE_PREFIX,
    Capture,
    Config,
    Layer,
    Layout,
    Origin,
    References,
    Setting,
    Topic,
)

SUFFIX = ".toml"
LOAD_PATH = ".llm/config.d"
"""The directory, in the workspace, in which config fragments are always looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The configured layers, without those of the command line."""

    below: LayerConfig
    """The user layer."""
    workspace: LayerConfig
    file: Path | None
    foreign: str | None = None
    """Which part of the workspace's file belongs to another user."""

    @property
    def withheld(self) -> tuple[str, ...]:
        """The keys of the workspace layer that need trust."""
        if self.file is None:
            return ()
        return find_withheld(self.workspace, self.below, resolve_links(owner_of(self.file)))

    @property
    def digest(self) -> str:
        """The digest of the settings that trust in the workspace covers."""
        return digest_workspace(self.workspace, self.below)


def read_layers(
    cwd: Path | None, *, user_dir: Path, environ: Mapping[str, str], any_owner: bool = False
) -> Layers:
    """Read the user's and the workspace's file; a missing one has no settings.

    A workspace's file of another user is read if it is trusted, with the settings it has now, or
    with `any_owner`. Raises ConfigError.
    """
    below = read_layer(user_source(user_dir))
    file = find_workspace(cwd, environ, user_dir=user_dir)
    if file is None:
        return Layers(below=below, workspace=LayerConfig(), file=None)
    source, foreign = find_source(file, user_dir), describe_foreign(file, owner_of(file))
    if any_owner:
        source = replace(source, owned_below=None)
    layers = Layers(below=below, workspace=read_layer(source), file=file, foreign=foreign)
    if foreign and not any_owner and not is_trusted(file, layers.digest, user_dir):
        source = replace(source, owned_below=owner_of(file))  # which refuses it
        return replace(layers, workspace=read_layer(source))
    return layers


def read_layer(source: LayerSource) -> LayerConfig:
    """Read a configuration file; a missing one has no settings. Raises ConfigError."""
    if not exists(source.path):
        return LayerConfig()
    return parse_layer(read_toml(source.path, owned_below=source.owned_below), source)


def user_source(user_dir: Path) -> LayerSource:
    """Return the source of the user layer's file."""
    origin = Origin(layer=Layer.USER, place=str(user_config_path(user_dir)))
    return LayerSource(origin=origin, base=user_dir)


def find_source(file: Path, user_dir: Path) -> LayerSource:
    """Return the source of a workspace layer's file, whose owner no longer matters if trusted."""
    root = owner_of(file)
    owned_below = None if is_accepted(file, user_dir) else root
    origin = Origin(layer=Layer.WORKSPACE, place=str(file))
    return LayerSource(origin=origin, base=root, bounds=root, owned_below=owned_below)


def load_config(
    cwd: Path | None,
    *,
    user_dir: Path,
    environ: Mapping[str, str],
    fragments: Sequence[str] = (),
    excluded: Sequence[str] = (),
) -> Config:
    """Load all layers and return the effective configuration.

    `cwd` is None if the current directory was deleted. `fragments` are the values of
    `--kb-cfg`, in order; `excluded` are what `list_exclusions` returned for an earlier
    configuration, without those of topics that are gone. Raises KbError.
    """
    layers = read_layers(cwd, user_dir=user_dir, environ=environ)
    withheld, file = layers.withheld, layers.file
    if file and withheld and is_trusted(file, layers.digest, user_dir):
        withheld = ()
    merged = merge([layers.below, layers.workspace.without(withheld)])
    base = owner_of(file) if file else (cwd or user_dir)
    own = LayerSource(origin=Origin(layer=Layer.COMMAND_LINE), base=base)
    for text in excluded:
        layer = parse_assignment(text, own)
        if all(id_ in merged.topics or is_given(id_) for id_ in layer.topics):
            merged = merge([merged, layer])
    for text in fragments:
        if _ASSIGNMENT.fullmatch(text):
            merged = assign(merged, text, own)
        else:
            path = find_fragment(text, cwd or base, [base / each for each in _load_paths(merged)])
            merged = _add_fragment(merged, path, own, layers)
    return resolve(merged, root=base, file=file, withheld=withheld)


# A key has no slash, so that `conf/a=b.toml` stays a path.
_ASSIGNMENT = re.compile(r"[\w.\"'\s-]+\+?=.*", re.DOTALL)


def assign(merged: LayerConfig, text: str, own: LayerSource) -> LayerConfig:
    """Merge an assignment: KEY=VALUE replaces a list, KEY+=VALUE extends it. Raises ConfigError."""
    layer, is_extended = parse_assignment(text, own), text.partition("=")[0].endswith("+")
    lists = {key for key, each in layer.settings.items() if isinstance(each.value, tuple)}
    if is_extended and layer.settings.keys() - lists:
        place = f"--kb-cfg {cut(text, MAX_PATH_SHOWN)}"
        raise ConfigError(place, ["only a list can be extended with '+='; use '='"])
    return merge([merged if is_extended else merged.without(lists), layer])


def parse_assignment(text: str, own: LayerSource) -> LayerConfig:
    """Return the layer of an assignment, whose value is TOML or else a string without quotes.

    Raises ConfigError.
    """
    place = f"--kb-cfg {cut(text, MAX_PATH_SHOWN)}"
    source = replace(own, origin=Origin(layer=Layer.COMMAND_LINE, place=place))
    key, _, value = text.partition("=")
    key, quoted = key.removesuffix("+"), json.dumps(value.strip(), ensure_ascii=False)
    try:
        document = decode_toml(f"{key} = {value}")
    except TomlError:
        try:
            document = decode_toml(f"{key} = {quoted}")
        except TomlError as error:
            raise ConfigError(place, [f"is not valid TOML: {error}"]) from error
    return parse_layer(document, source)


def _add_fragment(merged: LayerConfig, path: Path, own: LayerSource, layers: Layers) -> LayerConfig:
    """Merge a config fragment.

    A file inside the workspace may set what the workspace's own file may, a file elsewhere what
    the user may. Raises ConfigError.
    """
    source = replace(own, origin=Origin(layer=Layer.FRAGMENT, place=str(path)))
    root = owner_of(layers.file) if layers.file else None
    # A link belongs to the workspace if either of its ends does.
    if root is None or not (path.is_relative_to(root) or _leads_inside(path, root)):
        return merge([merged, parse_layer(read_toml(path), source)])
    source = replace(source, bounds=root, owned_below=None if layers.foreign else root)
    layer = parse_layer(read_toml(path, owned_below=source.owned_below), source)
    # `auto` counts here: the user named the fragment.
    withheld = set(find_withheld(layer, merged, resolve_links(root))) - set(ACTING_KEYS)
    if withheld:
        reason = "your own topics and references are not this file's to show"
        problems = [f"{key}: {reason}; use -k or an assignment" for key in sorted(withheld)]
        raise ConfigError(str(path), problems)
    return merge([merged, layer])


def _leads_inside(path: Path, root: Path) -> bool:
    return resolve_links(path).is_relative_to(resolve_links(root))


def find_fragment(text: str, cwd: Path, load_paths: Sequence[Path]) -> Path:
    """Return the absolute path of the file that a name or a path stands for.

    A path ends in `.toml`, or begins with `/`, `./`, `../` or `~/`. Raises KbError for a name
    that no directory has.
    """
    if not text.strip() or "\0" in text:
        raise ConfigError(
            "--kb-cfg", [f"found {quote(text)}; allowed: a name, a path or KEY=VALUE"]
        )
    if text.endswith(SUFFIX) or text.startswith(("/", "./", "../", "~/")):
        return Path(os.path.normpath(cwd / expand_home(text)))
    for directory in load_paths:
        path = Path(os.path.normpath(directory / f"{text}{SUFFIX}"))
        if os.path.lexists(path):
            return path
    files = (path for directory in load_paths for path, _ in iter_files(directory))
    known = sorted({path.removesuffix(SUFFIX) for path in files if path.endswith(SUFFIX)})
    searched = ", ".join(map(show_place, load_paths)) or "no directory"
    raise KbError(
        f"unknown config fragment {quote(text, MAX_PATH_SHOWN)}; available:"
        f" {', '.join(known) or 'none'} (in {searched}){suggest(text, known)}"
    )


_PASSING = frozenset({Layer.FRAGMENT, Layer.COMMAND_LINE})
"""The layers of one run, which rarely define a topic."""


def list_exclusions(config: Config) -> Iterator[str]:
    """Yield the assignments that repeat what the config fragments of one run exclude."""
    for topic in (*config.topics, *config.adjustments):
        for name in EXCLUDING:
            setting = config.settings.get(topic_key(topic.id, name))
            if setting and setting.origins[-1].layer in _PASSING and setting.value is not True:
                operator = "+=" if isinstance(setting.value, tuple) else "="
                written = json.dumps(setting.value, ensure_ascii=False)
                yield f'{TOPIC}."{topic.id}".{name}{operator}{written}'


def _load_paths(merged: LayerConfig) -> tuple[str, ...]:
    """Return `config_load_paths` as written; relative ones belong to the workspace."""
    return (LOAD_PATH, *_given(merged.settings, "kb").get("config_load_paths", ()))


def resolve(
    merged: LayerConfig,
    *,
    root: Path,
    file: Path | None = None,
    withheld: Sequence[str] = (),
) -> Config:
    """Return the effective configuration of merged layers.

    `root` is the base of relative `config_load_paths`. Raises ConfigError
    for a topic without `subjects`.
    """
    settings = merged.settings
    for where, problems in _find_unresolved(merged).items():
        raise ConfigError(where, problems)
    general = _given(settings, "kb")
    links = tuple(map(Path, general.pop("allow_links_to", ())))
    general.pop("config_load_paths", None)
    references = _given(settings, "kb.references")
    if "dir" in references:
        references["dir"] = Path(references["dir"])
    topics = [_resolve_topic(settings, id_, links) for id_ in merged.topics]
    defined = {id_ for id_ in merged.topics if topic_key(id_, "subjects") in settings}
    return Config(
        **general,
        config_load_paths=tuple(root / place for place in _load_paths(merged)),
        allow_links_to=links,
        topics=tuple(topic for topic in topics if topic.id in defined),
        adjustments=tuple(topic for topic in topics if topic.id not in defined),
        references=References(**references),
        capture=Capture(**_given(settings, "kb.capture")),
        check_ignore=_given(settings, "kb.check").get("ignore", ()),
        workspace=owner_of(file) if file else None,
        workspace_file=file,
        withheld=tuple(withheld),
        settings=settings,
    )


def _given(settings: Mapping[str, Setting], table: str) -> dict[str, Any]:
    """Return the settings of a table by name, without empty texts."""
    found = {name: settings.get(f"{table}.{name}") for name in TABLES.get(table, TABLES[TOPIC])}
    return {name: each.value for name, each in found.items() if each and each.value != ""}


def _resolve_topic(
    settings: Mapping[str, Setting], id_: str, allow_links_to: tuple[Path, ...]
) -> Topic:
    given = _given(settings, f"{TOPIC}.{id_}")
    root, layout = Path(given.pop("subjects", "")), Layout(given.pop("layout", Layout.FILES))
    return Topic(id=id_, root=root, layout=layout, allow_links_to=allow_links_to, **given)


def is_given(id_: str) -> bool:
    """Tell whether a topic may exist without configuration: a built-in or a reference topic."""
    return id_ in BUILT_IN_TOPICS or id_.startswith(REFERENCE_PREFIX)


def _find_unresolved(merged: LayerConfig) -> dict[str, list[str]]:
    """Return the problems of topics without `subjects`, keyed by the file to change."""
    found: dict[str, list[str]] = {}
    for id_, origins in merged.topics.items():
        problem = _find_problem(merged, id_)
        if problem and topic_key(id_, "subjects") not in merged.settings:
            found.setdefault(origins[0].place or origins[0].layer.value, []).append(problem)
    return found


def _find_problem(merged: LayerConfig, id_: str) -> str | None:
    """Return why a topic cannot be without `subjects`.

    The built-in topics can and, in the user's own layers, reference topics.
    """
    layers = {origin.layer for origin in merged.topics[id_]}
    if is_given(id_):
        for name in ("disabled", "ignore", "layout", "generated"):
            key = topic_key(id_, name)
            # An empty list counts as unset: it remains after the last pattern is removed.
            if key in merged.settings and merged.settings[key].value:
                return (
                    f"{key}: not for topic {id_!r}, whose subjects are not in a directory of "
                    "yours; 'enable = false' leaves all of it out"
                )
        if id_ in BUILT_IN_TOPICS or Layer.WORKSPACE not in layers:
            return None
    if layers <= _PASSING:
        known = sorted(topic for topic in merged.topics if topic != id_)
        return f"{TOPIC}.{id_}: {UnknownTopicError(id_, known)}"
    key = topic_key(id_, "subjects")
    return f"{key}: missing; topic {id_!r} needs the directory of its subjects"
