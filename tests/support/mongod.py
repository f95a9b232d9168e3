"""MongoDB, for asking it the same questions."""

import os
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
