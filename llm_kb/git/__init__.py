"""Runs git: `run` starts it, `read` reads its output while it runs."""

from llm_kb.git.read import GitObject, ObjectReader, read_git
from llm_kb.git.run import (
    MAX_OUTPUT,
    OUTPUT_TOO_LARGE,
    GitError,
    find_program,
    git_environment,
    local_environment,
    run_git,
    run_remote,
)

__all__ = [
    "MAX_OUTPUT",
    "OUTPUT_TOO_LARGE",
    "GitError",
    "GitObject",
    "ObjectReader",
    "find_program",
    "git_environment",
    "local_environment",
    "read_git",
    "run_git",
    "run_remote",
]
