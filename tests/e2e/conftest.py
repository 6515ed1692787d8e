"""What every test gets: a folder of running servers that are stopped afterwards."""

import pytest

from hop import Hop
from processes import Gateway, Mock
from raw import RawProvider


class Lab:
    """Starts what a test needs."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def mock(self):
        return self._keep(Mock(self.folder, f"mock-{len(self.running)}"))

    def gateway(self, upstream=None, config=None):
        name = f"gateway-{len(self.running)}"
        return self._keep(Gateway(self.folder, name, config or {}, upstream and upstream.url))

    def again(self, gateway, upstream, config=None):
        """Another process with what a gateway has kept."""
        name = f"gateway-{len(self.running)}"
        return self._keep(Gateway(self.folder, name, config or {}, upstream.url, gateway.data))

    def raw(self, answer=None):
        """A provider that keeps every byte."""
        return self._keep(RawProvider(answer))

    def hop(self, server):
        return self._keep(Hop(server.url))

    def chain(self, config=None):
        """A provider, a gateway before it, and a recording hop before that one."""
        mock = self.mock()
        return mock, self.hop(self.gateway(mock, config))

    def stop(self):
        for server in reversed(self.running):
            server.stop()
            if isinstance(server, Gateway):
                print(f"--- {server.log.name}\n{server.errors()}")

    def _keep(self, server):
        self.running.append(server)
        return server


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.stop()
