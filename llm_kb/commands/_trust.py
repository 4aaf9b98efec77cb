"""What `llm kb trust` and `llm kb untrust` have in common."""

from __future__ import annotations

from llm_kb.commands._config import say, user_dir
from llm_kb.errors import show_place
from llm_kb.trust import TrustRecords, trust_path


def say_corrupt(records: TrustRecords) -> None:
    """Say when the record of trust makes no sense: nothing is trusted then."""
    if records.is_corrupt:
        say(
            f"llm-kb: {show_place(trust_path(user_dir()))} makes no sense, so nothing is trusted; "
            "'llm kb trust' replaces it"
        )
