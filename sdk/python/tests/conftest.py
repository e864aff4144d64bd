"""A real server for the tests: pawl from PATH, which the tests kill and restart."""

import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

import pawl

pytest_plugins = ["pawl.testing"]


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="run the tests that take minutes, and no other")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if bool(item.get_closest_marker("long")) != config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="--long says which tests run"))


def until(condition, what, seconds=60):
    """Waits until a condition is true, and returns its result."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds}s"
        time.sleep(0.02)
    return value


class Server:
    def __init__(self, state, *flags):
        self.state, self.flags, self.process = state, flags, None
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        command = ["pawl", "server", "--listen", f"127.0.0.1:{self.port}", "--state-dir", str(self.state), "--ui", "off", *self.flags]
        with open(f"{self.state}.log", "ab") as said:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        until(self.ready, "the server is ready")
        return self

    def ready(self):
        assert self.process.poll() is None, pathlib.Path(f"{self.state}.log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=10):
                return True
        except (OSError, urllib.error.URLError):
            return False

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A shared server with an address, for tests that do not stop it."""
    server = Server(tmp_path_factory.mktemp("shared") / "state").start()
    yield server
    server.kill(signal.SIGTERM)


@pytest.fixture
def server(tmp_path):
    """A server that the test may kill."""
    server = Server(tmp_path / "state").start()
    yield server
    if server.process.poll() is None:
        server.kill()


@pytest.fixture
def client(shared):
    with pawl.Client(shared.url) as client:
        yield client


def descriptors():
    """The sockets and files that this process has open."""
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
    return {fd: to for fd, to in found.items() if to.startswith("socket:") or "pawl" in to}


@pytest.fixture
def leaves_nothing():
    """The test leaves no socket, no file of a state directory and no thread behind."""
    before, threads = descriptors(), set(threading.enumerate())
    yield
    left = {fd: to for fd, to in descriptors().items() if before.get(fd) != to}
    assert not left
    assert set(threading.enumerate()) <= threads
