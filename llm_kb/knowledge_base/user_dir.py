"""The directory of the user in `llm`, the embedding model set there, and the configuration here.

Importing the host takes half a second, so it is imported only to embed something.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llm_kb.config.load import load_config
from llm_kb.config.settings import Config
from llm_kb.config.workspace import find_cwd
from llm_kb.knowledge_base.kinds import given_kinds

if TYPE_CHECKING:
    from llm_kb.search.index.index import Embedder


def find_user_dir() -> Path:
    """Return the host's user directory, which may be missing: only what is written creates it."""
    return Path(os.environ.get("LLM_USER_PATH") or click.get_app_dir("io.datasette.llm"))


def read_default_embedding_model() -> str | None:
    """Return the id of the host's default embedding model; None if none is set."""
    try:
        text = (find_user_dir() / "default_embedding_model.txt").read_text("utf-8", "replace")
    except OSError:  # there is no usable directory of the user
        return None
    return text.strip() or None


def find_embedder(name: str | None) -> Embedder | None:
    """Return the embedding model of this name, by default llm's; None if none is set, or "".

    Raises EmbeddingError for a name that no model has.
    """
    from llm_kb.search.index.index import Embedder, EmbeddingError  # noqa: PLC0415 - few requests need it

    wanted = read_default_embedding_model() if name is None else name
    if not wanted:
        return None
    from llm import UnknownModelError  # noqa: PLC0415 - see above

    try:
        model = _get_model(wanted)
    except UnknownModelError as error:
        if name is None:
            return None  # the plugin of the default model was uninstalled
        raise EmbeddingError(name, "is unknown; see `llm embed-models`") from error

    def embed(texts: Sequence[str]) -> list[Sequence[float]]:
        try:
            return list(model.embed_multi(texts))
        except Exception as error:  # a model's plugin may raise anything
            raise EmbeddingError(model.model_id, f"failed: {error}") from error

    return Embedder(model=model.model_id, embed=embed)


@lru_cache(maxsize=1)
def _get_model(name: str) -> Any:
    """Return an embedding model, the same for all searches: a local one loads its weights once."""
    import llm  # noqa: PLC0415 - few requests need it

    return llm.get_embedding_model(name)


def load_here(fragments: Sequence[str] = ()) -> Config:
    """Return the configuration in effect in the current directory. Raises KbError."""
    return load_config(
        find_cwd(),
        user_dir=find_user_dir(),
        environ=os.environ,
        fragments=fragments,
        given=given_kinds(),
    )
