"""Hook implementations, nothing else. Imported at every start of `llm`."""

from __future__ import annotations
