"""A configuration is a layer, or refused with one ConfigError of bounded size."""

from __future__ import annotations

from pathlib import Path

from llm_kb.config.layers import LayerSource, parse_layer
from llm_kb.config.settings import Layer, Origin
from llm_kb.config.workspace import decode_bytes
from llm_kb.errors import ConfigError

SOURCE = LayerSource(
    origin=Origin(layer=Layer.WORKSPACE, place="/w/llm-kb.toml"), base=Path("/w"), bounds=Path("/w")
)


def fuzz(data: bytes) -> None:
    """Read bytes as a document, and as the value of each key of a topic."""
    for start in (b"", b"[kb]\n", b"[kb.topic.p]\n", b"[kb.topic.p]\nlearned="):
        try:
            layer = parse_layer(decode_bytes(start + data, Path("/w/llm-kb.toml")), SOURCE)
        except ConfigError as error:
            size = len(str(error))
        else:
            size = 0
            assert all(key.startswith("kb.") for key in layer)
        assert size < 50_000, "an error as long as its cause"
