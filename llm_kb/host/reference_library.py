"""The reference topics of this user: their library, and the embedding model of `llm`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import llm

from llm_kb.api import find_embedder
from llm_kb.config.load import load_config
from llm_kb.config.workspace import find_cwd
from llm_kb.references.library import Library, open_library


def current_library() -> Library:
    """Return the reference topics under the configuration in effect here."""
    user_dir = Path(llm.user_dir())
    config = load_config(find_cwd(), user_dir=user_dir, environ=os.environ)
    library = open_library(config, user_dir)
    name = config.references.embedding_model
    # Packages are those of the workspace, else of the directory we are in.
    workspace = config.workspace or find_cwd()
    return replace(library, workspace=workspace, find_embedder=lambda: find_embedder(name))
