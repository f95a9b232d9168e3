"""MongoDB, for asking it the same questions."""

import os
import time
from pathlib import Path

from .process import free_port
from .selkie import REPOSITORY, SelkieServer


def program() -> str:
    return os.environ.get("MONGOD") or str(REPOSITORY / ".build" / "mongod")


class MongodServer(SelkieServer):
    name = "mongod"

    def __init__(self, folder: Path, options: tuple[str, ...] = ()):
        super().__init__(folder)
        self.options = options
        self.port = free_port()
        self.data.mkdir()

    def command(self) -> list[str]:
        # Without JavaScript, as Selkie is.
        return [
            program(), "--bind_ip", "127.0.0.1", "--nounixsocket", "--noscripting",
            "--port", str(self.port), "--dbpath", str(self.data), *self.options,
        ]


class MongodReplicaSet(MongodServer):
    """A replica set of one, which has transactions."""

    def __init__(self, folder: Path, options: tuple[str, ...] = ()):
        super().__init__(folder, ("--replSet", "rs0", "--oplogSize", "64", *options))

    def start(self):
        super().start()
        with self.client(directConnection=True) as client:
            members = [{"_id": 0, "host": f"127.0.0.1:{self.port}"}]
            client.admin.command("replSetInitiate", {"_id": "rs0", "members": members})
            end = time.monotonic() + self.start_timeout_s
            while not client.admin.command("hello")["isWritablePrimary"]:
                assert time.monotonic() < end, "no primary was elected"
                time.sleep(0.02)
        return self
