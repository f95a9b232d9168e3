"""A clock of a server's own, which tests set (libfaketime)."""

from pathlib import Path

import pytest

from .selkie import REPOSITORY

# Debian's package libfaketime: installed, or unpacked by the set-up.
ROOTS = (Path("/"), REPOSITORY / ".build" / "faketime")
LIBRARIES = [path for root in ROOTS for path in root.glob("usr/lib/*/faketime/libfaketimeMT.so.1")]


class Clock:
    """The system's time as a server sees it. Durations are not changed: the system's monotonic
    clock is left alone."""

    def __init__(self, server):
        if not LIBRARIES:
            pytest.skip("libfaketime is not installed")
        self.file = server.folder / "clock"
        self.set(0)
        server.environment = {
            "LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
        }

    def set(self, offset_s: int):
        """Sets the clock to the time of now and these seconds."""
        # A reader must not find an empty file.
        new = self.file.with_suffix(".new")
        new.write_text(f"{offset_s:+d}\n")
        new.replace(self.file)
