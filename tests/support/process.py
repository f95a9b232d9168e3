"""A server process of ours: started, waited for, stopped or killed."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path


def free_port() -> int:
    """Returns a port on which nothing listens. It is below those that systems give to outgoing
    connections (32768 and up), of which one could be given this one before the server that it is
    meant for has it."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            return port
    raise AssertionError("all of a hundred ports are in use")


class ServerProcess:
    """Subclasses define the command line and detect when the server is ready."""

    name = "server"
    start_timeout_s = 60

    def __init__(self, folder: Path):
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"{self.name}.log"
        self.process: subprocess.Popen | None = None
        # Added to what the tests have.
        self.environment: dict[str, str] = {}

    def command(self) -> list[str]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} is not running"
        return self.process.pid

    def start(self):
        with self.log.open("ab") as log:
            environment = os.environ | self.environment
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )
        end = time.monotonic() + self.start_timeout_s
        while not self.is_ready():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n{self.end_of_log()}")
            if time.monotonic() > end:
                self.kill()
                raise AssertionError(f"{self.name} did not start:\n{self.end_of_log()}")
            time.sleep(0.02)
        return self

    def end_of_log(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def suspend(self):
        """SIGSTOP, and wait until each thread has stopped: they run on for a moment."""
        self.process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 10
        while self._thread_states() != {"T"}:
            assert time.monotonic() < end, f"{self.name} does not stop"
            time.sleep(0.001)

    def _thread_states(self) -> set[str]:
        states = set()
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                states.add(task.joinpath("stat").read_text().rpartition(")")[2].split()[0])
        return states

    def resume(self):
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def stop(self, timeout_s: float = 30) -> int:
        """SIGTERM, and wait for the end."""
        if self.is_running():
            self.process.send_signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def wait(self, timeout_s: float = 30) -> int:
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not stop within {timeout_s} s:\n{self.end_of_log()}") from None

    def kill(self):
        """SIGKILL: no chance to tidy up."""
        if self.is_running():
            self.process.kill()
        if self.process is not None:
            self.process.wait()

    def status(self, key: str) -> int:
        """A figure of /proc/PID/status, in bytes."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {key} in /proc/{self.pid}/status")

    def resident_bytes(self) -> int:
        return self.status("VmRSS")

    def peak_resident_bytes(self) -> int:
        return self.status("VmHWM")

    def forget_peak(self):
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
