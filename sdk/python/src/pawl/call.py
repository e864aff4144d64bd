"""Calls of the HTTP API as data: what is asked, how the answer is read, and when it is worth asking again.

The verbs (``verbs.py``) yield these; a driver with sockets (``client.py``) or with asyncio (``aio.py``) carries them out. So both clients
decide alike.
"""

from __future__ import annotations

import dataclasses
import decimal
import json
import math
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from .errors import InvalidRequest, PawlError, Unavailable, from_problem, invalid, python_value

MAX_WAIT = 60.0  # seconds: the longest time for which the server holds an answer back
FIRST_PAUSE, MOST_PAUSE = 0.05, 2.0  # seconds: limits of the pause before the second try, and before any try
STREAM_SILENCE = 45.0  # seconds: by then three keep-alive comments of a quiet stream are missing


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    method: str
    path: str
    body: bytes | Path | None = None  # a path's file is read while it is sent
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hold: float = 0.0  # seconds for which the server may hold the answer back
    raw: bool = False  # the answer is bytes, not JSON


@dataclasses.dataclass(frozen=True, slots=True)
class Open:
    """Opens a stream of lines, and closes the one before."""

    path: str
    accept: str = "application/x-ndjson"


@dataclasses.dataclass(frozen=True, slots=True)
class ReadLine:
    """Reads the next line of the open stream. The answer is None where the stream has broken off."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pause:
    """Waits for so many seconds."""

    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Emit:
    """Hands a value to the caller of an iteration."""

    value: Any


def query(path: str, **parameters: object) -> str:
    """A path with parameters. None, "" and False are left out, and a list is given once for each of its items."""
    pairs: list[tuple[str, str]] = []
    for name, value in parameters.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False or one == "":
                continue
            pairs.append((name, "true" if one is True else str(one)))
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _real(text: str) -> float | decimal.Decimal:
    number = float(text)
    if len(text) <= 15 and "e" not in text.lower():
        return number  # a float holds 15 digits
    exact = decimal.Decimal(text)
    return number if math.isfinite(number) and decimal.Decimal(repr(number)) == exact else exact


def _integer(text: str) -> int | decimal.Decimal:
    try:
        return int(text)
    except ValueError:  # more digits than Python reads
        return decimal.Decimal(text)


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text. A number of which a float would lose digits, or that it would make infinite or zero, is a Decimal."""
    return json.loads(text, parse_float=_real, parse_int=_integer)


def encode(value: object) -> bytes:
    """A value as the JSON of a request.

    Raises:
        InvalidRequest: JSON has no such value, with its place.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        encoded = text.encode()
    except (TypeError, ValueError, RecursionError) as e:
        _find_fault(value, "", 0)
        raise InvalidRequest(f"the request cannot be written as JSON: {e}") from None
    if "\\u0000" in text:
        _find_fault(value, "", 0)
    return encoded


def _find_fault(value: object, place: str, depth: int) -> None:
    if depth > 200:
        raise invalid(place[:80], "...", "nested deeper than 200 levels, or contains itself", "give a flatter value")
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as e:
            raise invalid(
                place,
                value,
                f"character {e.start} is half of a surrogate pair, which no text has",
                'replace it, for example with text.encode("utf-8", "replace").decode()',
            ) from None
        if "\0" in value:
            raise invalid(place, value, f"character {value.index(chr(0))} is NUL, which no text has", "give bytes, or leave it out")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            here = f"{place}.{key}" if place else str(key)
            _find_fault(key, here, depth + 1)
            _find_fault(inner, here, depth + 1)
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            _find_fault(inner, f"{place}[{i}]", depth + 1)
    elif isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise invalid(place, value, "JSON has no such number", "give a finite number, or None")
    elif value is not None and not isinstance(value, (bool, int, float)):
        fix = python_value(value, "give str, int, float, bool, None, a list or a dict")
        raise invalid(place, value, f"JSON has no {type(value).__name__}", fix)


def new_key() -> str:
    """A fresh idempotency key."""
    return os.urandom(16).hex()


def pause_after(attempt: int, least: float) -> float:
    """Seconds before the next try: between 0 and a bound that doubles with each, and no less than the server asked for."""
    most: float = min(FIRST_PAUSE * 2 ** min(attempt - 1, 10), MOST_PAUSE)
    return least + random.random() * most


class Refused(Exception):
    """An answer that is not a success. It is ``error`` to the caller, unless it is worth another try after ``after`` seconds."""

    def __init__(self, error: PawlError, again: bool, after: float) -> None:
        super().__init__(str(error))
        self.error, self.again, self.after = error, again, after


class Broken(Exception):
    """The connection failed before a whole answer came."""


def read_answer(call: Call, status: int, headers: Mapping[str, str], body: bytes) -> Any:
    """What an answer says.

    Raises:
        Refused: The server did not do it.
    """
    if status < 300:
        if call.raw:
            return body
        try:
            return read_json(body) if body else None
        except ValueError:
            raise Refused(
                Unavailable(f"the answer to {call.method} {call.path} is not JSON: {body[:100]!r}; is this a Pawl server?"), False, 0
            ) from None
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"detail": f"the server answered {status}: {body[:200].decode(errors='replace')}"}
    try:
        after = min(max(float(headers.get("retry-after", 0)), 0.0), 60.0)
    except ValueError:
        after = 0.0
    raise Refused(from_problem(status, problem), status in (429, 502, 503, 504), after)


class Retries:
    """Decides whether one call is tried again. Every call of this package may be: submissions have an idempotency key."""

    def __init__(self, patience: float, now: float, where: str) -> None:
        self.patience, self.begun, self.where, self.attempt = patience, now, where, 0

    def failed(self, error: Exception, now: float) -> float:
        """Seconds to wait before the next try.

        Raises:
            PawlError: There is none.
        """
        self.attempt += 1
        if isinstance(error, Refused):
            pause = pause_after(self.attempt, error.after)
            if error.again and now - self.begun + pause <= self.patience:
                return pause
            raise error.error from None
        pause = pause_after(self.attempt, 0)
        if now - self.begun + pause > self.patience:
            raise Unavailable(
                f"cannot reach the server {self.where} for {now - self.begun:.0f}s: {error}; is pawl server running there? "
                "Without a server leave url and PAWL_SERVER out"
            ) from None
        return pause
