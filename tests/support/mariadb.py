"""A private MariaDB server, reached by its Unix socket and a port of its own."""

import getpass
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

import pymysql

from .process import ServerProcess, free_port

# A folder of plugins: those that the set-up has unpacked, or the server's own.
UNPACKED = Path(__file__).resolve().parents[2] / ".build" / "mariadb-plugins"
PLUGINS = os.environ.get("MARIADB_PLUGINS") or (str(UNPACKED) if UNPACKED.is_dir() else None)

# Options of a server whose log the change feed can read.
LOG = ("--log-bin", "--binlog-format=ROW", "--server-id=1", "--sync-binlog=1")

os.environ["PATH"] += os.pathsep + "/usr/sbin"


class MariadbServer(ServerProcess):
    name = "mariadbd"

    def __init__(self, folder: Path, options: tuple[str, ...] = ()):
        super().__init__(folder)
        self.data = folder / "mariadb"
        self.port = free_port()
        self.options = options
        # A socket's path may not be longer than some 100 bytes, and temporary folders of tests are.
        self.socket_folder = tempfile.mkdtemp(prefix="selkie-")
        self.socket = f"{self.socket_folder}/mariadb.sock"
        self.install()

    def install(self):
        done = subprocess.run(
            ["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db",
             f"--datadir={self.data}", f"--user={getpass.getuser()}"],
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": self.socket_folder},
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def command(self) -> list[str]:
        return [
            "mariadbd", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={self.data}",
            f"--socket={self.socket}", "--bind-address=127.0.0.1", f"--port={self.port}", "--innodb-log-file-size=48M",
            "--max-allowed-packet=128M",
            # Servers that share a directory for temporary tables remove each other's when they
            # start.
            f"--tmpdir={self.socket_folder}",
            # Plugins that are packaged apart from the server.
            *([f"--plugin-dir={PLUGINS}"] if PLUGINS else []),
            *self.options,
        ]

    def is_ready(self) -> bool:
        try:
            self.connect().close()
        except pymysql.err.OperationalError:
            return False
        return True

    def connect(self, **options) -> pymysql.Connection:
        """A SQL connection beside Selkie, as root, each statement its own transaction."""
        return pymysql.connect(unix_socket=self.socket, user="root", autocommit=True, charset="utf8mb4", **options)

    def sql(self, statement: str, *parameters) -> tuple:
        """Runs one statement and gives its rows."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return cursor.fetchall()

    def forget_users(self):
        """Removes the users and roles that Selkie keeps: they are those of all gateways."""
        for collection in ("users", "roles"):
            self.sql(f"DROP TABLE IF EXISTS selkie.`system.{collection}`")

    def url(self) -> str:
        """Returns the URL for `selkie serve --mariadb`."""
        return f"mysql://root@localhost/?socket={quote(self.socket, safe='')}"

    def tcp_url(self, user: str = "root", password: str = "") -> str:
        login = f"{user}:{password}" if password else user
        return f"mysql://{login}@127.0.0.1:{self.port}"

    def remove(self):
        self.kill()
        shutil.rmtree(self.socket_folder, ignore_errors=True)
        shutil.rmtree(self.data, ignore_errors=True)
