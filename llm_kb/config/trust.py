"""What a workspace's configuration may not decide, and the record of those that the user trusts.

Trust covers a digest of the resolved settings; if they change, it must be given again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from llm_kb.config import workspace
from llm_kb.config.layers import TOPIC, Settings, by_topic, find_effect, find_tables, topic_key
from llm_kb.config.settings import Config
from llm_kb.errors import join_names, show_place
from llm_kb.files.atomic import WriteError, locked, replace_file
from llm_kb.files.containment import resolve_links

TRUST_FILE = "kb-trust.json"

EXCLUDING = ("disabled", "enable")
"""The keys of a topic by which a model sees less of it."""


LIMIT_KEY = "kb.max_result_chars"
"""A limit that a workspace only lowers: answers are paid by the user."""

_MEANINGS = {
    LIMIT_KEY: "let answers be longer than your own limit",
}


def find_withheld(layer: Settings, below: Settings, root: Path) -> tuple[str, ...]:
    """Return the dotted keys of a workspace's layer that count only once it is trusted.

    These are settings that act unasked, such as `auto = true`, a limit of answers above the user's,
    and those by which a model could see more of what is not the workspace's: of a topic that a
    lower layer defined outside the workspace, or adjusted. Turning such a topic
    off, or disabling subjects of it, needs no trust. `root` is the workspace with links resolved.
    """
    known = by_topic(below)
    keys = [k for k, each in layer.items() if find_effect(k) and each.value not in {False, ()}]
    if LIMIT_KEY in layer and not _is_lower(layer[LIMIT_KEY].value, below):
        keys.append(LIMIT_KEY)
    for id_, fields in by_topic(layer).items():
        place = known.get(id_, {}).get("subjects")
        is_inside = place is not None and Path(str(place.value)).is_relative_to(root)
        if "subjects" in fields or id_ not in known or is_inside:
            continue  # the workspace's own topic
        keys += [
            topic_key(id_, name)
            for name in find_tables()[TOPIC]
            if name in fields and (name not in EXCLUDING or fields[name].value is True)
        ]
    return tuple(dict.fromkeys(keys))


def _is_lower(most: object, below: Settings) -> bool:
    """Tell whether a limit is not above that of lower layers; 0 is none."""
    allowed = below[LIMIT_KEY].value if LIMIT_KEY in below else Config().max_result_chars
    return not allowed or 0 < int(str(most)) <= int(str(allowed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The configured layers, without those of the command line."""

    below: Settings
    """The user layer."""
    workspace: Settings
    file: Path | None
    foreign: str | None = None
    """Which part of the workspace's file belongs to another user."""

    @property
    def withheld(self) -> tuple[str, ...]:
        """The keys of the workspace layer that need trust."""
        if self.file is None:
            return ()
        root = resolve_links(self.file.parent)
        return find_withheld(self.workspace, self.below, root)

    @property
    def digest(self) -> str:
        """The digest of the settings that trust in the workspace covers, links resolved.

        These include the settings of lower layers for the same topics, but not comments
        and the order of keys.
        """
        topics = [topic_key(id_, "") for id_ in by_topic(self.workspace)]
        borrowed = {k: s.value for k, s in self.below.items() if k.startswith(tuple(topics))}
        own = {key: setting.value for key, setting in self.workspace.items()}
        canonical = json.dumps([own, borrowed], sort_keys=True, ensure_ascii=True)
        return sha256(canonical.encode()).hexdigest()


def read_trust(user_dir: Path) -> dict[str, str]:
    """Return the trusted digests by the paths of workspace files; an invalid record has none."""
    with suppress(*_DAMAGES):
        return _load_trust(user_dir)
    return {}


_DAMAGES = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


def _load_trust(user_dir: Path) -> dict[str, str]:
    trusted = json.loads((user_dir / TRUST_FILE).read_bytes())["trusted"]
    return {path: digest for path, digest in trusted.items() if isinstance(digest, str)}


def is_trusted(file: Path, digest: str, user_dir: Path) -> bool:
    """Tell whether a workspace file is trusted with the settings it has now."""
    return read_trust(user_dir).get(str(file)) == digest


def is_accepted(file: Path, user_dir: Path) -> bool:
    """Tell whether a workspace of another user was ever trusted."""
    is_known = str(file) in read_trust(user_dir)
    return is_known and workspace.describe_foreign(file, file.parent) is not None


def set_trust(file: Path, digest: str | None, user_dir: Path) -> bool:
    """Record trust in a workspace file with this digest, or withdraw it without one.

    Tells whether the file was trusted before. Raises WriteError, also for a damaged record, which
    may name other workspaces.
    """
    with locked(user_dir / ".kb-trust.lock"):
        try:
            digests = _load_trust(user_dir)
        except FileNotFoundError:
            digests = {}
        except _DAMAGES as error:
            reason = "it is damaged; move it away, and trust the workspaces in it again"
            raise WriteError(user_dir / TRUST_FILE, reason) from error
        before = digests.pop(str(file), None)
        if digest is not None:
            digests[str(file)] = digest
        if digest != before:
            text = json.dumps({"trusted": digests}, indent=2, sort_keys=True)
            replace_file(user_dir / TRUST_FILE, f"{text}\n".encode(), new_mode=0o600)
    return before is not None


def render_request(layers: Layers) -> str:
    """Render what needs trust in a workspace layer, with the effects."""
    lines, place, withheld = [], show_place(layers.file), layers.withheld
    if layers.foreign:
        lines += [f"{place}: {layers.foreign}, who decides what models are given from it", ""]
    if withheld:
        lines += [f"{place} asks for:", ""]
    for key in withheld:
        lines.append(f"  {key} = {render_value(layers.workspace[key].value)}")
        meaning = _MEANINGS.get(key) or find_effect(key)
        lines.append(f"      {meaning or 'change what a model sees of your own topic'}")
    if layers.foreign or "kb.auto" in withheld:
        lines += ["", f"Its topics: {join_names(list(by_topic(layers.workspace))) or 'none'}"]
    return "\n".join(lines)


def render_value(value: object) -> str:
    """Render a value as TOML on one line that is safe for a terminal."""
    shown = json.dumps(value, ensure_ascii=False)
    # Characters that move a cursor or reorder a line are escaped.
    return shown if shown.isprintable() else json.dumps(value)


def render_skipped(place: Path | None, keys: Sequence[str]) -> str:
    """Return the line about settings that need trust, with the command that gives it."""
    return (
        f"skipped from {show_place(place)}: {', '.join(keys)}. This workspace is not trusted:"
        " look at it with 'llm kb config', then run 'llm kb trust'."
    )


def render_withheld(config: Config, *, answers: bool = True) -> str | None:
    """Return the line about a workspace's skipped settings in a request that asks for knowledge.

    None if only `auto` is skipped, which then makes no difference, or without a tool that
    `answers` the limit of answers.
    """
    is_needed = set(config.withheld) - {"kb.auto", *([] if answers else [LIMIT_KEY])}
    return render_skipped(config.workspace_file, config.withheld) if is_needed else None
