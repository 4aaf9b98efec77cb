"""The reference topics of this user: their library, and the embedding model of `llm`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import llm

from llm_kb.config.load import load_config
from llm_kb.config.workspace import find_cwd
from llm_kb.references.library import Library, open_library
from llm_kb.search.index.vectors import Embedder, EmbeddingError


def current_library() -> Library:
    """Return the reference topics under the configuration in effect here."""
    user_dir = Path(llm.user_dir())
    config = load_config(find_cwd(), user_dir=user_dir, environ=os.environ)
    library = open_library(config, user_dir)
    name = config.references.embedding_model
    return replace(library, find_embedder=lambda: find_embedder(name))


def find_embedder(name: str | None) -> Embedder | None:
    """Return the embedding model of this name, else llm's default; None where there is none.

    Raises EmbeddingError for a name that no model has.
    """
    wanted = name or llm.get_default_embedding_model()
    if not wanted:
        return None
    try:
        model = llm.get_embedding_model(wanted)
    except llm.UnknownModelError as error:
        if name is None:
            return None  # the plugin of the default model was uninstalled
        raise EmbeddingError(name, "is unknown; see `llm embed-models`") from error

    def embed(texts: Sequence[str]) -> list[Sequence[float]]:
        try:
            return list(model.embed_multi(texts))
        except Exception as error:  # whatever a model's plugin may raise
            raise EmbeddingError(model.model_id, f"failed: {error}") from error

    return Embedder(model=model.model_id, embed=embed)
