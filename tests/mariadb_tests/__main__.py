"""Executes MariaDB's own tests through Selkie's routers. Those that pass directly must pass.

cd tests && python -m mariadb_tests [--router connections --router read-write-split] [--list FILE]
                                    [--direct] [NAME …]

`make mariadb-tests` does so with the tests of Debian's package mariadb-test. --direct executes them
without Selkie, to find those that can be in the list: a test needs no special options of the
server, and leaves it as it was.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.mariadb import MariadbServer
from support.process import free_port
from support.selkie import REPOSITORY, SelkieServer

TESTS = Path(__file__).parent
PACKAGE = REPOSITORY / ".build/mariadb-test"
CASES = PACKAGE / "usr/share/mysql/mysql-test"
TIMEOUT_S = 60
OWN_SCHEMAS = {"mysql", "test", "information_schema", "performance_schema", "sys", "mtr"}

# As mariadb-test-run sets them.
OPTIONS = (
    "--character-set-server=latin1", "--local-infile=1", "--log-bin-trust-function-creators=1", "--key-buffer-size=1M",
    "--sort-buffer-size=256K", "--max-heap-table-size=1M", "--innodb-buffer-pool-size=8M", "--default-storage-engine=myisam",
    "--use-stat-tables=preferably", "--histogram-type=json_hb", "--performance-schema=ON", "--innodb-flush-log-at-trx-commit=0",
    "--log-basename=mysqld", "--max-allowed-packet=16M",
)

GATEWAY = """
[server.db1]
address = "127.0.0.1:{server}"
[monitor.main]
kind = "replication"
servers = ["db1"]
user = "root"
[service.app]
monitor = "main"
router = "{router}"
[listener.sql]
protocol = "mariadb"
address = "127.0.0.1:{port}"
service = "app"
"""


class TestedServer(MariadbServer):
    """A server that can be made new in a moment."""

    def __init__(self, folder: Path):
        super().__init__(folder, (*OPTIONS, f"--secure-file-priv={folder}"))
        self.fresh = folder / "fresh"
        shutil.copytree(self.data, self.fresh)
        self.users = None

    def renew(self):
        self.kill()
        shutil.rmtree(self.data)
        shutil.copytree(self.fresh, self.data)
        self.begin()

    def begin(self):
        self.start()
        self.sql("CREATE DATABASE IF NOT EXISTS test")
        self.sql("CREATE DATABASE IF NOT EXISTS mtr")
        self.users = self.sql("SELECT user, host FROM mysql.user ORDER BY 1, 2")

    def is_clean(self) -> bool:
        return (
            {name for (name,) in self.sql("SHOW DATABASES")} <= OWN_SCHEMAS
            and not self.sql("SHOW TABLES FROM test")
            and self.sql("SELECT user, host FROM mysql.user ORDER BY 1, 2") == self.users
        )


class Gateway:
    def __init__(self, folder: Path, server: MariadbServer, router: str):
        self.port = free_port()
        folder.mkdir(exist_ok=True)
        file = folder / "selkie.toml"
        file.write_text(GATEWAY.format(server=server.port, port=self.port, router=router))
        self.selkie = SelkieServer(folder / "s", options=("--threads", "1", "--config", str(file))).start()
        time.sleep(1)


def execute(folder: Path, server: MariadbServer, port: int, name: str) -> tuple[str, str]:
    """Executes a test. Returns pass, skip, fail or time, and the output."""
    connect = f"--no-defaults --user=root --host=127.0.0.1 --protocol=tcp --port={port}"
    result = CASES / "main" / f"{name}.result"
    command = [
        str(PACKAGE / "usr/bin/mariadb-test"), *connect.split(), "--silent", "--database=test", f"--basedir={CASES}",
        f"--tmpdir={folder}/tmp", f"--logdir={folder}/log", "--character-sets-dir=/usr/share/mysql/charsets",
        f"--test-file={CASES}/main/{name}.test", *([f"--result-file={result}"] if result.exists() else []),
    ]
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(PACKAGE / "usr/lib/x86_64-linux-gnu"), "MYSQL_TEST_DIR": str(CASES),
        "MYSQLTEST_VARDIR": str(folder), "MYSQL_TMP_DIR": f"{folder}/tmp", "MASTER_MYPORT": str(port),
        "MASTER_MYSOCK": server.socket, "MYSQLD_DATADIR": str(server.data), "TZ": "GMT-3", "LC_ALL": "C", "USE_SYMLINKS": "0",
        "MYSQL": f"mariadb {connect} --default-character-set=latin1", "MYSQL_DUMP": f"mariadb-dump {connect}",
        "MYSQL_SHAREDIR": "/usr/share/mysql",
    }
    try:
        done = subprocess.run(command, cwd=CASES, env=environment, capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return "time", f"took longer than {TIMEOUT_S} s"
    outcome = {0: "pass", 62: "skip"}.get(done.returncode, "fail")
    return outcome, (done.stdout + done.stderr).decode("latin1")


def run(folder: Path, names: list[str], router: str | None) -> list[str]:
    """Executes tests through a router, or directly. Returns the names of those that do not pass."""
    for part in ("tmp", "log"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    server = TestedServer(folder)
    server.begin()
    gateway = Gateway(folder / "gateway", server, router) if router else None
    failed = []
    try:
        for name in names:
            outcome, output = execute(folder, server, gateway.port if gateway else server.port, name)
            if outcome != "pass":
                failed.append(name)
                print(f"{router or 'direct'}: {name}: {outcome}\n{output[-2000:]}", flush=True)
            if gateway:
                assert gateway.selkie.is_running(), "Selkie has ended"
            if outcome in ("fail", "time") or not server.is_clean():
                server.renew()
                time.sleep(1.5 if gateway else 0)
    finally:
        if gateway:
            gateway.selkie.kill()
        server.remove()
    print(f"{router or 'direct'}: {len(names) - len(failed)} of {len(names)} pass", flush=True)
    return failed


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--router", action="append")
    arguments.add_argument("--direct", action="store_true")
    arguments.add_argument("--list", type=Path, default=TESTS / "names.txt")
    arguments.add_argument("names", nargs="*")
    options = arguments.parse_args()
    lines = options.list.read_text().splitlines()
    names = options.names or [name for line in lines for name in line.split("#")[0].split()]
    routers = [None] if options.direct else options.router or ["connections", "read-write-split"]
    with tempfile.TemporaryDirectory() as folder:
        failed = [run(Path(folder) / (router or "direct"), names, router) for router in routers]
    return 1 if any(failed) else 0


sys.exit(main())
