"""Calls one function of the program in the file that the argument names, and writes what it returns as the last line of stdout.

The call is the JSON object on stdin: function, args, kwargs, and the mark that this last line begins with. Behind the mark stands an
object: {"value": …}, or {"error": "…"} where what was returned is no JSON value. The program has an empty stdin.
"""

import importlib.util
import inspect
import json
import os
import sys
import traceback


class NotJSON(Exception):
    pass


def plain(v):
    """v as json.dumps writes it without changing anything: tuples become lists, sets sorted lists, arrays of numpy lists."""
    if v is None or isinstance(v, (bool, int)):
        return v
    if isinstance(v, float):
        if v != v or v in (float("inf"), float("-inf")):
            raise NotJSON(f"it returned {v}, and JSON has no such number")
        return v
    if isinstance(v, str):
        try:
            v.encode()
        except UnicodeEncodeError:
            raise NotJSON("it returned a string with half a surrogate pair, which is no text") from None
        return v
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if isinstance(v, dict):
        for k in v:
            if not isinstance(k, str):
                raise NotJSON(f"it returned a dict with the key {k!r}, and the names in a JSON object are strings")
        return {plain(k): plain(x) for k, x in v.items()}
    if isinstance(v, (set, frozenset)):
        try:
            return sorted(plain(x) for x in v)  # as lists: < of two sets is "is part of", which is no order
        except TypeError:
            raise NotJSON("it returned a set of elements that have no order, so it is no JSON array") from None
    if hasattr(v, "tolist"):
        return plain(v.tolist())
    raise NotJSON(f"it returned a value of type {type(v).__name__}, which is no JSON value")


def find(program, name):
    """The function of the program, or the method of an object of one of its classes."""
    at, _, method = name.partition(".")
    found = getattr(program, at, None)
    if found is None:
        raise NameError(f"the program defines no {at!r}, which the case calls")
    if method:
        found = getattr(found(), method, None)
        if found is None:
            raise NameError(f"the class {at!r} of the program has no method {method!r}, which the case calls")
    return found


def flush():
    """Writes what the program has printed, also if it has closed sys.stdout or put another object there, and puts the first one back."""
    for stream in (sys.stdout, sys.__stdout__):
        try:
            stream.flush()
        except Exception:
            pass
    sys.stdout = sys.__stdout__


def run(path):
    out = os.dup(1)  # the program may close stdout, or have it lead elsewhere
    call = json.loads(sys.stdin.buffer.read())
    sys.argv = [path]
    spec = importlib.util.spec_from_file_location("main", path)
    program = importlib.util.module_from_spec(spec)
    sys.modules["main"] = program
    spec.loader.exec_module(program)
    value = find(program, call["function"])(*call["args"], **call["kwargs"])
    if inspect.iscoroutine(value):
        import asyncio

        value = asyncio.run(value)
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    try:
        answer = json.dumps({"value": plain(value)})
    except NotJSON as e:
        answer = json.dumps({"error": str(e)})
    except RecursionError:
        answer = json.dumps({"error": "it returned a value that is nested too deeply, or that contains itself"})
    flush()
    line = f"\n{call['mark']}{answer}\n".encode()
    while line:
        line = line[os.write(out, line) :]


try:
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    run(sys.argv[1])
except Exception as e:
    # Without the frames of this file and of the import system the traceback is the one that the program alone would have.
    tb = e.__traceback__
    while tb is not None and (tb.tb_frame.f_code.co_filename == __file__ or "importlib" in tb.tb_frame.f_code.co_filename):
        tb = tb.tb_next
    flush()
    traceback.print_exception(type(e), e, tb)
    sys.exit(1)
