"""Records the workspace configurations that the user trusts.

Trust covers a digest of the resolved settings; if they change, it must be given again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from llm_kb.config.layers import LayerConfig
from llm_kb.config.workspace import (
    WorkspaceFile,
    describe_foreign,
    find_workspace,
    may_set_auto,
    read_bytes,
    user_config_path,
)
from llm_kb.errors import ConfigError
from llm_kb.files.atomic import locked, replace_file

TRUST_FILE = "kb-trust.json"

_SETS_AUTO = re.compile(rb"^[ \t]*(?:kb[ \t]*\.[ \t]*)?auto[ \t]*=[ \t]*true\b", re.MULTILINE)


def trust_path(user_dir: Path) -> Path:
    """Return the path of the records."""
    return user_dir / TRUST_FILE


def _lock_path(user_dir: Path) -> Path:
    return user_dir / ".kb-trust.lock"


def digest_workspace(workspace: LayerConfig, below: LayerConfig) -> str:
    """Return a digest of the settings of a workspace layer, links resolved.

    The digest includes the settings of lower layers for the same topics, but not comments
    and the order of keys.
    """
    borrowed = {
        key: setting.value
        for key, setting in below.settings.items()
        if any(key.startswith(f"kb.topic.{id_}.") for id_ in workspace.topics)
    }
    own = {key: setting.value for key, setting in workspace.settings.items()}
    canonical = json.dumps([own, borrowed], sort_keys=True, ensure_ascii=True)
    return sha256(canonical.encode()).hexdigest()


def read_trust(user_dir: Path) -> dict[str, str] | None:
    """Return the trusted digests by the paths of workspace files; None for an invalid record."""
    try:
        document = json.loads(trust_path(user_dir).read_bytes())
        trusted = document["trusted"]
        if all(isinstance(item, str) for pair in trusted.items() for item in pair):
            return dict(trusted)
    except FileNotFoundError:
        return {}
    # An invalid file grants nothing; `trust` replaces it and reports that.
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    return None


def is_trusted(file: Path, digest: str, user_dir: Path) -> bool:
    """Tell whether a workspace file is trusted with the settings it has now."""
    return (read_trust(user_dir) or {}).get(str(file)) == digest


def was_trusted(file: Path, user_dir: Path) -> bool:
    """Tell whether a workspace file was ever trusted, with any settings."""
    return str(file) in (read_trust(user_dir) or {})


def is_accepted(file: WorkspaceFile, user_dir: Path) -> bool:
    """Tell whether a workspace of another user was ever trusted."""
    return was_trusted(file.path, user_dir) and describe_foreign(file.path, file.root) is not None


def find_untrusted_auto(
    cwd: Path | None, user_dir: Path, environ: Mapping[str, str]
) -> Path | None:
    """Return the workspace's file if it clearly sets `auto` and was never trusted, else None.

    Nothing is parsed: a stranger's configuration may be large.
    """
    try:
        file = find_workspace(cwd, environ, user_dir=user_dir)
        if file is None or not _SETS_AUTO.search(read_bytes(file.path)):
            return None
    except ConfigError:
        return None
    if may_set_auto(user_config_path(user_dir)) or was_trusted(file.path, user_dir):
        return None
    return file.path


def trust(file: Path, digest: str, user_dir: Path) -> dict[str, str] | None:
    """Record trust in a workspace file with this digest; return the earlier digests.

    A corrupt record is replaced. Raises WriteError.
    """
    with locked(_lock_path(user_dir)):
        before = read_trust(user_dir)
        _write(user_dir, {**(before or {}), str(file): digest})
    return before


def untrust(file: Path, user_dir: Path) -> bool:
    """Withdraw trust; tell whether there was any. Raises WriteError."""
    with locked(_lock_path(user_dir)):
        kept = read_trust(user_dir) or {}
        if kept.pop(str(file), None) is None:
            return False
        _write(user_dir, kept)
    return True


def _write(user_dir: Path, digests: Mapping[str, str]) -> None:
    text = json.dumps({"trusted": dict(digests)}, indent=2, sort_keys=True)
    replace_file(trust_path(user_dir), f"{text}\n".encode(), new_mode=0o600)
