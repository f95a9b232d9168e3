"""A history while it is recorded, and its check by the program `histories`."""

import json
import subprocess
import threading
import time
from pathlib import Path

from support.selkie import program


class Transaction:
    """One transaction of a client. Operations are recorded before they are sent, if they change
    anything, and otherwise when their reply is there."""

    def __init__(self, client: int):
        self.client = client
        self.operations: list[dict] = []
        self.began = time.monotonic_ns()
        self.ended = 0
        self.outcome = ""

    def append(self, key: int, element: int):
        self.operations.append({"append": [key, element]})

    def read(self, key: int, document: dict | None):
        self.operations.append({"read": [key, document["list"] if document else []]})

    def end(self, outcome: str):
        """The outcome is `committed`, `aborted` or `unknown`."""
        self.ended = time.monotonic_ns()
        self.outcome = outcome


class History:
    """The transactions of all clients, and the events of change streams."""

    def __init__(self):
        self.transactions: list[Transaction] = []
        self.streams: list[list[tuple[int, int]]] = []
        self.lock = threading.Lock()

    def add(self, transaction: Transaction):
        with self.lock:
            self.transactions.append(transaction)

    def count(self, outcome: str) -> int:
        with self.lock:
            return sum(one.outcome == outcome for one in self.transactions)

    def write(self, path: Path):
        with path.open("w") as file:
            for one in self.transactions:
                file.write(json.dumps({"transaction": vars(one)}) + "\n")
            for events in self.streams:
                file.write(json.dumps({"stream": events}) + "\n")

    def check(self, path: Path) -> subprocess.CompletedProcess:
        """Writes the history to a file, and returns the verdict of the checker: 0 if it has no
        anomalies, otherwise 1 with their description."""
        self.write(path)
        return subprocess.run([program("histories"), str(path)], capture_output=True, text=True, timeout=300)
