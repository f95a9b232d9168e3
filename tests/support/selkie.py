"""The program under test."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pymongo
from pymongo.errors import PyMongoError

from .mariadb import MariadbServer
from .process import ServerProcess, free_port

EMBEDDED_MARIADB = "embedded-mariadb"

REPOSITORY = Path(__file__).resolve().parents[2]


def program(name: str = "selkie") -> str:
    """Returns the path of Selkie ($SELKIE, else the program that cargo built), or of the program
    `name` beside it."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    selkie = Path(os.environ.get("SELKIE") or target / "release" / "selkie")
    return str(selkie.with_name(name) if name != "selkie" else selkie)


@functools.cache
def has_embedded_mariadb() -> bool:
    """Returns whether the program was built with `--features embedded-mariadb`."""
    version = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout
    return "embedded MariaDB" in version


def data_flag(store: str) -> str:
    """Returns the option that names the data of a store within the process."""
    return "--embedded-mariadb" if store == EMBEDDED_MARIADB else "--data"


class SelkieServer(ServerProcess):
    """`selkie serve` on its own store, on a MariaDB server, or (`data_flag`) on a MariaDB within
    the process."""

    name = "selkie"

    def __init__(self, folder: Path, mariadb: MariadbServer | None = None, options: tuple[str, ...] = (),
                 data_flag: str = "--data"):
        super().__init__(folder)
        self.mariadb = mariadb
        self.data = folder / "data"
        self.port = free_port()
        self.options = options
        self.data_flag = data_flag

    @property
    def uri(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        store = ["--mariadb", self.mariadb.url()] if self.mariadb else [self.data_flag, str(self.data)]
        return [program(), "serve", "--listen", f"127.0.0.1:{self.port}", *store, *self.options]

    def is_ready(self) -> bool:
        try:
            with pymongo.MongoClient(self.uri, serverSelectionTimeoutMS=200, directConnection=True) as client:
                return client.admin.command("ping")["ok"] == 1
        except PyMongoError:
            return False

    def remove(self):
        """Kills it and removes its data: a MariaDB takes some 200 MB from the start."""
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)

    def client(self, **options) -> pymongo.MongoClient:
        # A test that has ended the server does not wait half a minute for it.
        return pymongo.MongoClient(self.uri, **({"serverSelectionTimeoutMS": 5000} | options))


def run(*arguments: str, timeout_s: float = 20, name: str = "selkie") -> subprocess.CompletedProcess:
    """Runs Selkie, or the program `name` beside it, and returns its exit code and output."""
    return subprocess.run(
        [program(name), *arguments], capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL
    )
