"""Names that are never subjects."""

from __future__ import annotations

import pytest

from llm_kb.subjects.ignore import is_always_ignored


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (".env", True),
        (".ENV", True),
        (".env.local", True),
        (".env.example", False),
        ("id_rsa", True),
        ("id_rsa.pub", False),
        ("environment", False),
    ],
)
def test_files_with_passwords_and_keys_are_never_subjects(name: str, expected: bool) -> None:
    assert is_always_ignored(name) is expected
