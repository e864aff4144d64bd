"""Fixtures for pytest, which finds them once the package is installed.

``pawl`` is a :class:`pawl.Client` of a server of the test run, on a temporary directory, that ends with the run:

    def test_answer(pawl):
        assert pawl.evaluate("print(6*7)").stdout == "42\\n"
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .client import Client


@pytest.fixture(scope="session", name="pawl")
def local_pawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a local server for the whole test run. Its state is in a temporary directory, and nothing of it is kept."""
    with Client(state_dir=tmp_path_factory.mktemp("pawl")) as client:
        yield client
