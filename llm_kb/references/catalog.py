"""The door to reference topics for every request: what it costs where there are none.

Only here, and not in what it opens, does a look at the disk come before the imports.
"""

from __future__ import annotations

from pathlib import Path

from llm_kb.topics import Catalog, Config, References, Topic

DIRECTORY = Path("kb", "references")
"""Where topics are kept below the host's user directory."""


def references_root(settings: References, user_dir: Path) -> Path:
    """Return the directory of all reference topics: `[kb.references] dir`, else the default."""
    return settings.dir or user_dir / DIRECTORY


def reference_catalogs(config: Config, user_dir: Path) -> list[tuple[Topic, Catalog]]:
    """Pair every reference topic with its catalog, sorted by id.

    For the composition, which appends them to the configured topics: there a
    `[kb.topic.ID]` of the same id comes first and hides ours, which is how a user
    renames or disables one. Costs one `stat` when there are no references. A
    `topic.md` that cannot be read is left out; `llm kb references list` says why.
    """
    root = references_root(config.references, user_dir)
    if not _is_directory(root):
        return []
    from llm_kb.references.reading import read_catalogs  # noqa: PLC0415 - most users have none

    return read_catalogs(root)


def recent_references(config: Config, user_dir: Path) -> str | None:
    """Return the prompt's list of recently fetched topics; None without any."""
    root = references_root(config.references, user_dir)
    if not _is_directory(root):
        return None
    from llm_kb.references.reading import read_recent  # noqa: PLC0415 - as above

    return read_recent(root)


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # one above it that nobody may look into
        return False
