"""The server of this user on this machine: found on the state directory, joined, or started.

A process that works on a state directory holds the lock of ``pawl.lock`` and writes the address of its Unix socket into it. Clients hold
``pawl.join``, shared, while they use it, and it does not end before they have let go.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

from .call import Pause
from .errors import Unavailable

PATIENCE = 60.0  # seconds for a server to start, or for a command that only reads to end
_LOG = "local.log"
_LOG_BYTES = 1 << 20  # bytes at which the log of local servers starts again from empty


@dataclasses.dataclass(frozen=True, slots=True)
class Joined:
    """A connection to the server of a state directory, which stays while ``lock`` is open."""

    address: str
    token: str
    lock: int

    def leave(self) -> None:
        """Lets the server end."""
        with contextlib.suppress(OSError):
            os.close(self.lock)


def state_directory() -> Path:
    """Where the commands of this user keep their state, as ``pawl`` decides it."""
    for name, beneath in (("PAWL_STATE_DIR", ()), ("XDG_STATE_HOME", ("pawl",))):
        if os.environ.get(name):
            return Path(os.environ[name], *beneath)
    try:
        return Path.home() / ".local" / "state" / "pawl"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"pawl-{os.getuid()}"


def find_binary() -> str:
    """The program ``pawl``: the one that the wheel has brought, or the first that PATH finds.

    Raises:
        Unavailable: There is none.
    """
    for scheme in (None, f"{os.name}_user"):
        with contextlib.suppress(KeyError):
            beside = Path(sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")) / "pawl"
            if os.access(beside, os.X_OK):
                return str(beside)
    if found := shutil.which("pawl"):
        return found
    raise Unavailable(
        "there is no program pawl here, and no server was named: install the wheel of this platform, put pawl into PATH, "
        "or name a server with Client(url=...) or PAWL_SERVER"
    )


def join(directory: Path, binary: str, now: Callable[[], float]) -> Generator[Pause, None, Joined]:
    """Joins the server of a state directory, and starts one where there is none.

    It yields pauses, for which the caller waits.

    Raises:
        Unavailable: No server could be started within ``PATIENCE``; what it said is in the message.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise Unavailable(f"cannot make the state directory {directory}: {e}; name another with PAWL_STATE_DIR") from None
    deadline, mark = now() + PATIENCE, ""
    while not (joined := _try_join(directory)):
        said = _said(directory, mark)
        failed = mark and f"failed {mark}" in said
        if failed and "held by" not in said:
            raise Unavailable(f"pawl server --local could not start: {said.partition(f'failed {mark}')[0].strip()}")
        if now() > deadline:
            raise Unavailable(f"no server of the state directory {directory} answers within {PATIENCE:.0f}s: {said or 'it said nothing'}")
        if failed:  # another process holds the directory, and is starting or ending
            yield Pause(0.5)
        if failed or not mark:
            mark = _start(binary or find_binary(), directory)
        yield Pause(0.02)
    return joined


def _owner(directory: Path) -> dict[str, object]:
    try:
        read = json.loads((directory / "pawl.lock").read_text())
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _try_join(directory: Path) -> Joined | None:
    lock = os.open(directory / "pawl.join", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        owner = _owner(directory)
        address = str(owner.get("address", ""))
        if not address or not owner.get("works"):
            raise ConnectionError
        with socket.socket(socket.AF_UNIX) as probe:  # pawl.lock may be from a process that was killed
            probe.connect(address)
    except OSError:
        os.close(lock)
        return None
    return Joined(address, str(owner.get("token", "")), lock)


def _start(binary: str, directory: Path) -> str:
    """Starts a server in a session of its own, which Ctrl-C here does not reach, and as the child of a shell, so that no ended process
    waits for this one. Returns the mark of this start in the log."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PAWL_SERVER", "PAWL_TOKEN", "PAWL_TOKEN_FILE")}
    mark, log = os.urandom(8).hex(), directory / _LOG
    fresh = not log.exists() or log.stat().st_size > _LOG_BYTES
    with open(log, "wb" if fresh else "ab") as said:
        said.write(f"start {mark}\n".encode())
        said.flush()
        script = f'{{ "$@" || echo failed {mark}; }} &'
        subprocess.run(
            ["/bin/sh", "-c", script, "sh", binary, "server", "--local", "--state-dir", str(directory)],
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, start_new_session=True, check=True,
        )  # fmt: skip
    return mark


def _said(directory: Path, mark: str) -> str:
    """What the server of a start has written."""
    try:
        text = (directory / _LOG).read_text(errors="replace")
    except OSError:
        return ""
    return text.rpartition(f"start {mark}\n")[2][-2000:].strip()


if sys.platform == "win32":  # pragma: no cover
    raise ImportError("pawl needs Linux or macOS")
