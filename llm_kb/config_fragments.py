"""Config fragments: what a value of `--kb-cfg` names, and what it says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_kb.assignments import is_assignment, parse_assignment
from llm_kb.config_keys import Speaker, suggest
from llm_kb.config_layers import LayerConfig, parse_layer
from llm_kb.config_reading import read_toml
from llm_kb.errors import ConfigError, KbError, show_place
from llm_kb.topics import Layer, Origin

SUFFIX = ".toml"


class UnknownFragmentError(KbError):
    """A name that no directory of `config_load_paths` has a file for."""

    def __init__(self, name: str, known: Sequence[str], searched: Sequence[Path]) -> None:
        self.name = name
        self.known = tuple(known)
        self.searched = tuple(searched)
        places = ", ".join(map(show_place, searched)) or "no directory"
        names = ", ".join(known) or "none"
        super().__init__(
            f"unknown config fragment {name!r}; there are: {names} (in {places})"
            f"{suggest(name, known)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentPlaces:
    """Where fragments are looked for, and what the directories they name start from."""

    cwd: Path | None
    root: Path
    """The workspace's root; without a workspace the current directory."""
    has_workspace: bool
    home: Path | None
    load_paths: Sequence[Path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """What a config fragment says, and whether it is the workspace that says it."""

    layer: LayerConfig
    is_workspace: bool


def read_fragment(text: str, places: FragmentPlaces) -> Fragment:
    """Read what a value of `--kb-cfg` stands for.

    A file inside the workspace may say what the workspace's own file may; an
    assignment, or a file elsewhere, is the user's word. Raises
    UnknownFragmentError, ConfigError.
    """
    if is_assignment(text):
        speaker = _speaker(Origin(layer=Layer.COMMAND_LINE, place=f"--kb-cfg {text}"), places)
        return Fragment(layer=parse_assignment(text, speaker), is_workspace=False)
    path = find_fragment(text, places)
    # The link and what it leads to: neither end may turn the other into the user's word.
    is_workspace = places.has_workspace and (
        path.is_relative_to(places.root)
        or resolve_links(path).is_relative_to(resolve_links(places.root))
    )
    origin = Origin(layer=Layer.FRAGMENT, place=str(path))
    speaker = _speaker(origin, places, bounds=places.root if is_workspace else None)
    table = read_toml(path, require_owner=is_workspace)
    return Fragment(layer=parse_layer(table, speaker), is_workspace=is_workspace)


def find_fragment(text: str, places: FragmentPlaces) -> Path:
    """Return the file that a name or a path stands for, absolute.

    A name is looked up first, unless the text can only be a path or is one that
    ends in `.toml` and exists. Raises UnknownFragmentError, ConfigError.
    """
    if not text.strip() or "\0" in text:
        raise ConfigError("--kb-cfg", [f"found {text!r}; allowed: a name, a path or KEY=VALUE"])
    path = _locate(text, places)
    if text.startswith(("/", "./", "../", "~/")) or Path(text).is_absolute():
        return path
    is_file = os.path.isfile(path)  # noqa: PTH113 - it never raises, however long the name
    if text.endswith(SUFFIX) and is_file:
        return path
    named = _find_named(text.removesuffix(SUFFIX), places.load_paths)
    if named is not None:
        return named
    if is_file:
        return path
    raise UnknownFragmentError(text, list_fragments(places.load_paths), places.load_paths)


def list_fragments(load_paths: Sequence[Path]) -> list[str]:
    """Return the names that `--kb-cfg` would find, sorted."""
    names: set[str] = set()
    for directory in load_paths:
        for parent, _, files in os.walk(directory):
            below = Path(parent).relative_to(directory)
            names.update(
                (below / file).as_posix().removesuffix(SUFFIX)
                for file in files
                if file.endswith(SUFFIX)
            )
    return sorted(names)


def _find_named(name: str, load_paths: Sequence[Path]) -> Path | None:
    for directory in (Path(os.path.normpath(load_path)) for load_path in load_paths):
        path = Path(os.path.normpath(directory / f"{name}{SUFFIX}"))
        if not os.path.lexists(path):
            continue
        if not path.is_relative_to(directory) or not _leads_inside(path, directory):
            problem = f"{name!r} leaves {str(directory)!r}; to use such a file, give its path"
            raise ConfigError("--kb-cfg", [problem])
        return path
    return None


def _locate(text: str, places: FragmentPlaces) -> Path:
    path = Path(text)
    if text.startswith("~/") and places.home is not None:
        path = places.home / text[2:]
    return Path(os.path.normpath((places.cwd or places.root) / path))


def _speaker(origin: Origin, places: FragmentPlaces, *, bounds: Path | None = None) -> Speaker:
    return Speaker(
        origin=origin,
        base=places.root,
        home=places.home,
        bounds=bounds,
        resolve_links=resolve_links,
    )


def _leads_inside(path: Path, directory: Path) -> bool:
    return resolve_links(path).is_relative_to(resolve_links(directory))


def resolve_links(path: Path) -> Path:
    """Return a path with its links resolved; of a loop, as much as can be."""
    # Not `Path.resolve`, which raises for a loop of links before Python 3.13.
    return Path(os.path.realpath(path))
