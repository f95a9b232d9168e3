"""The program under test."""

import os
import subprocess
from pathlib import Path

import pymongo
from pymongo.errors import PyMongoError

from .mariadb import MariadbServer
from .process import ServerProcess, free_port

REPOSITORY = Path(__file__).resolve().parents[2]


def program() -> str:
    """The program to test: $SELKIE, else what cargo built."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return os.environ.get("SELKIE") or str(target / "release" / "selkie")


class SelkieServer(ServerProcess):
    """`selkie serve` on its own store, or on a MariaDB server."""

    name = "selkie"

    def __init__(self, folder: Path, mariadb: MariadbServer | None = None, options: tuple[str, ...] = ()):
        super().__init__(folder)
        self.mariadb = mariadb
        self.data = folder / "data"
        self.port = free_port()
        self.options = options

    @property
    def uri(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        store = ["--mariadb", self.mariadb.url()] if self.mariadb else ["--data", str(self.data)]
        return [program(), "serve", "--listen", f"127.0.0.1:{self.port}", *store, *self.options]

    def is_ready(self) -> bool:
        try:
            with pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=200, directConnection=True) as client:
                return client.admin.command("ping")["ok"] == 1
        except PyMongoError:
            return False

    def client(self, **options) -> pymongo.MongoClient:
        return pymongo.MongoClient(self.uri, **options)


def run(*arguments: str, timeout_s: float = 20) -> subprocess.CompletedProcess:
    """Runs the program to its end and gives its exit code and output."""
    return subprocess.run(
        [program(), *arguments], capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL
    )
