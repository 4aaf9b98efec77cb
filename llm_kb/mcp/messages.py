"""The messages of JSON-RPC: one object of JSON each, parsed from bytes and rendered to them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

Message: TypeAlias = "dict[str, Any]"

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR, UNSUPPORTED_VERSION = -32602, -32603, -32022

LARGEST = 4_000_000
"""Maximum number of bytes of a message: an annotation may be long."""

_LONE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class ProtocolError(Exception):
    """A message that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, **data: object) -> None:
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}
        super().__init__(message)


class Params:
    """The parameters of a request, read with the checks of their types."""

    def __init__(self, value: object) -> None:
        self._values = self._require_table({} if value is None else value, "params")

    def text(self, name: str) -> str:
        """Return a required string. Raises ProtocolError."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise ProtocolError(INVALID_PARAMS, f"{name} is required and must be a string")
        return value

    def table(self, name: str) -> Mapping[str, Any]:
        """Return an object, empty if there is none. Raises ProtocolError."""
        value = self._values.get(name)
        return self._require_table({} if value is None else value, name)

    @property
    def cursor(self) -> str | None:
        """The place from which to continue a list."""
        return self.text("cursor") if self._values.get("cursor") is not None else None

    @staticmethod
    def _require_table(value: object, name: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise ProtocolError(INVALID_PARAMS, f"{name} must be an object")
        return value


def parse_message(data: bytes) -> Message:
    """Return a request (which has an `id`), a notification, or a response. Raises ProtocolError.

    Half a surrogate pair, which no answer could quote, is replaced.
    """
    if len(data) > LARGEST:
        raise ProtocolError(INVALID_REQUEST, f"a message has at most {LARGEST:,} bytes")
    text = data.decode("utf-8", "replace")
    try:
        message = json.loads(text)
        if _LONE_SURROGATE.search(text):
            message = json.loads(_encode(message))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(PARSE_ERROR, "the message is not valid JSON") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, "the message is not a JSON-RPC 2.0 object")
    is_response = "method" not in message and ("result" in message or "error" in message)
    if not is_response and not isinstance(message.get("method"), str):
        raise ProtocolError(INVALID_REQUEST, "the message has no method")
    if "id" in message and type(message["id"]) not in {str, int} and not is_response:
        raise ProtocolError(INVALID_REQUEST, "the id is not a string or a whole number")
    return message


def is_request(message: Message) -> bool:
    """Return whether a message is to be answered."""
    return "method" in message and "id" in message


def render_message(message: Message) -> bytes:
    """Return a message as one line."""
    return _encode({"jsonrpc": "2.0", **message}) + b"\n"


def render_error(error: ProtocolError, id_: str | int | None = None) -> bytes:
    """Return the line that answers a message with an error; without an id if it has none."""
    return render_message({"id": id_, "error": error.error})


def _encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
