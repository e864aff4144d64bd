"""JSON objects into the dataclasses of ``api.py``. Fields that this version does not know are left aside: servers may be newer."""

from __future__ import annotations

import dataclasses
import functools
import keyword
import typing
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


def decode(cls: type[T], value: Any) -> T:
    """A JSON object as an instance of a dataclass of ``api.py``."""
    fields = _fields(typing.cast(Hashable, cls))
    return cls(**{fields[name][0]: fields[name][1](inner) for name, inner in value.items() if name in fields})


@functools.cache
def _fields(cls: Any) -> dict[str, tuple[str, Callable[[Any], Any]]]:
    hints = typing.get_type_hints(cls)
    names = [f.name for f in dataclasses.fields(cls)]
    return {n[:-1] if n.endswith("_") and keyword.iskeyword(n[:-1]) else n: (n, _decoder(hints[n])) for n in names}


def _decoder(hint: Any) -> Callable[[Any], Any]:
    inner = [a for a in typing.get_args(hint) if a is not type(None)]
    if dataclasses.is_dataclass(hint):
        return lambda value: None if value is None else decode(typing.cast(type, hint), value)
    if typing.get_origin(hint) is list:
        one = _decoder(inner[0])
        return lambda value: [one(v) for v in value]
    if typing.get_origin(hint) is dict:
        one = _decoder(inner[1])
        return lambda value: {k: one(v) for k, v in value.items()}
    if inner:  # T | None
        one = _decoder(inner[0])
        return lambda value: None if value is None else one(value)
    return lambda value: value
