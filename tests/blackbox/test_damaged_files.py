"""Damage to the embedded store's files, and disk failures: no wrong data is returned, and no loss
is silent.

SELKIE_DAMAGE_SEED repeats a run of the test with random damage; SELKIE_DAMAGED_FILES says how many
files are damaged (40).
"""

import contextlib
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import bson
import pymongo
import pytest
from pymongo.errors import PyMongoError

from support.selkie import SelkieServer, run

FILES = int(os.environ.get("SELKIE_DAMAGED_FILES", "40"))
PAGE = 4096
FRAME = PAGE + 24
DOCUMENTS = 400


def document(number: int) -> dict:
    """One in eight takes several pages."""
    size = 9000 if number % 8 == 0 else 150
    text = "".join(random.Random(number).choices("abcdefghij", k=size))
    return {"_id": number, "group": number % 10, "at": number * 3, "text": text, "list": [number, number + 1]}


def fill(server: SelkieServer):
    with server.client() as client:
        for name in ("things", "others"):
            collection = client.shop[name]
            collection.create_index("group")
            collection.create_index("list")
            collection.insert_many([document(number) for number in range(DOCUMENTS)])
            # An index is read, so that nothing is left for later.
            assert len(list(collection.find({"group": 3}))) == DOCUMENTS // 10


def start(folder: Path, *options: str, environment: dict | None = None) -> SelkieServer:
    server = SelkieServer(folder, options=options)
    if environment:
        server.environment = environment
    return server.start()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A data directory after a clean end."""
    server = start(tmp_path_factory.mktemp("whole"))
    try:
        fill(server)
        server.stop()
    finally:
        server.kill()
    return server.data


def flip(path: Path, rng: random.Random, bits: int) -> list[int]:
    """Flips bits; gives the pages that they are in."""
    data = bytearray(path.read_bytes())
    pages = []
    for _ in range(bits):
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
        pages.append(at // PAGE + 1)
    path.write_bytes(data)
    return sorted(set(pages))


def wrong_answers(client: pymongo.MongoClient) -> tuple[list[str], int]:
    """Returns the documents that were returned but never stored, or are missing without an error,
    and the number of failed queries."""
    wrong, failed = [], 0
    for name in ("things", "others"):
        collection = client.shop[name]
        expected = {number: document(number) for number in range(DOCUMENTS)}
        questions = [
            ("scan", lambda c=collection: list(c.find({}).hint({"$natural": 1})), lambda _: True),
            ("scan back", lambda c=collection: list(c.find({}).hint({"$natural": -1})), lambda _: True),
            ("index", lambda c=collection: list(c.find({"group": 3})), lambda it: it["group"] == 3),
            ("arrays", lambda c=collection: list(c.find({"list": {"$gt": 200, "$lt": 300}})),
             lambda it: any(200 < n < 300 for n in it["list"])),
            ("sorted", lambda c=collection: list(c.find({}).sort("_id", 1)), lambda _: True),
        ]
        for number in range(0, DOCUMENTS, 7):
            questions.append((f"_id {number}", lambda c=collection, n=number: list(c.find({"_id": n})),
                              lambda it, n=number: it["_id"] == n))
        for what, ask, wanted in questions:
            try:
                found = {it["_id"]: it for it in ask()}
            except PyMongoError as error:
                assert not isinstance(error, (pymongo.errors.AutoReconnect, pymongo.errors.ProtocolError)), (what, error)
                failed += 1
                continue
            if found != {number: it for number, it in expected.items() if wanted(it)}:
                wrong.append(f"{name}, {what}: {len(found)} documents")
        for what, ask, right in [
            ("count", lambda c=collection: c.count_documents({}), DOCUMENTS),
            ("count by index", lambda c=collection: c.count_documents({"group": 3}), DOCUMENTS // 10),
            ("count from the catalog", lambda c=collection: c.estimated_document_count(), DOCUMENTS),
        ]:
            try:
                count = ask()
            except PyMongoError:
                failed += 1
                continue
            if count != right:
                wrong.append(f"{name}, {what}: {count}")
    return wrong, failed


def invalid(client: pymongo.MongoClient) -> list[str]:
    """Collections that `validate` finds damaged."""
    found = []
    for name in ("things", "others"):
        with contextlib.suppress(PyMongoError):
            if client.shop.command("validate", name)["valid"]:
                continue
        found.append(name)
    return found


@pytest.mark.selkie_only
def test_flipped_bits_never_return_a_wrong_document(whole, tmp_path):
    seed = int(os.environ.get("SELKIE_DAMAGE_SEED") or random.SystemRandom().randrange(10**6))
    print(f"SELKIE_DAMAGE_SEED={seed}")
    rng = random.Random(seed)
    refused = served = 0
    for number in range(FILES):
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder / "data")
        bits = rng.choice([1, 1, 2, 5, 20, 50])
        pages = flip(folder / "data" / "selkie.sqlite", rng, bits)
        told = f"seed {seed}, file {number}: {bits} bits, pages {pages}"

        verified = run("verify", "--data", str(folder / "data"))
        assert verified.returncode == 1, f"{told}: verify found nothing\n{verified.stdout}{verified.stderr}"
        for page in pages:
            assert f"page {page} of" in verified.stdout, f"{told}: verify did not find page {page}\n{verified.stdout}"

        server = SelkieServer(folder)
        try:
            server.start()
        except AssertionError as error:
            assert "damaged" in str(error), f"{told}: {error}"
            refused += 1
            continue
        finally:
            if not server.is_running():
                shutil.rmtree(folder / "data", ignore_errors=True)
        try:
            with server.client(serverSelectionTimeoutMS=5000) as client:
                wrong, failed = wrong_answers(client)
                assert not wrong, f"{told}: {wrong}"
                found = invalid(client)
                if failed:
                    assert found, f"{told}: {failed} questions failed, and validate finds nothing"
                    assert "damaged" in server.log.read_text(), told
                # validate reports the same about a collection as verify.
                for name in ("things", "others"):
                    assert (f"shop.{name}" in verified.stdout) <= (name in found), f"{told}\n{verified.stdout}"
            served += 1
        finally:
            server.remove()
    print(f"{served} files served, {refused} refused")
    assert served > refused


@pytest.mark.selkie_only
def test_an_error_names_the_collection_and_others_keep_working(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "data")
    path = tmp_path / "data" / "selkie.sqlite"
    data = bytearray(path.read_bytes())
    at = data.find(document(8)["text"][5000:5200].encode())
    data[at] ^= 4
    path.write_bytes(data)
    server = start(tmp_path)
    try:
        with server.client() as client:
            damaged = None
            for name in ("things", "others"):
                try:
                    assert client.shop[name].find_one({"_id": 8}) == document(8)
                    assert len(list(client.shop[name].find())) == DOCUMENTS
                    client.shop[name].insert_one({"_id": "new"})
                    assert client.shop.command("validate", name)["valid"]
                except PyMongoError as error:
                    assert damaged is None
                    damaged = name
                    assert f"shop.{name} is damaged" in str(error)
            assert damaged
            assert client.shop[damaged].find_one({"_id": 9}) == document(9)
            client.shop[damaged].insert_one({"_id": "new"})
            report = client.shop.command("validate", damaged)
            assert not report["valid"], report
        assert f"page {at // PAGE + 1} of" in server.log.read_text()
    finally:
        server.remove()


@pytest.mark.selkie_only
@pytest.mark.parametrize("how", ["cut", "zeroed"])
def test_files_cut_short_and_zeroed_pages(whole, tmp_path, how):
    shutil.copytree(whole, tmp_path / "data")
    path = tmp_path / "data" / "selkie.sqlite"
    length = path.stat().st_size
    with path.open("r+b") as file:
        if how == "cut":
            file.truncate(length // 2 // PAGE * PAGE)
        else:
            file.seek(length // 2 // PAGE * PAGE)
            file.write(bytes(20 * PAGE))
    assert run("verify", "--data", str(tmp_path / "data")).returncode == 1
    server = start(tmp_path)
    try:
        with server.client() as client:
            wrong, failed = wrong_answers(client)
            assert not wrong
            assert failed
            assert invalid(client)
    finally:
        server.remove()


def write_and_kill(folder: Path, documents: int = 3000) -> SelkieServer:
    server = start(folder)
    with server.client() as client:
        for first in range(0, documents, 10):
            client.shop.things.insert_many([{"_id": n} for n in range(first, first + 10)])
    server.kill()
    return server


def starts_not(folder: Path) -> str:
    server = SelkieServer(folder)
    with pytest.raises(AssertionError) as raised:
        try:
            server.start()
        finally:
            server.kill()
    return str(raised.value)


@pytest.mark.selkie_only
@pytest.mark.parametrize("damage", ["byte", "header", "cut", "missing"])
def test_commits_lost_from_the_log_are_reported(tmp_path, damage):
    server = write_and_kill(tmp_path)
    log = server.data / "selkie.sqlite-wal"
    content = bytearray(log.read_bytes())
    if damage == "byte":
        content[32 + 20 * FRAME + 500] ^= 1
    elif damage == "header":
        content[20] ^= 1
    elif damage == "cut":
        del content[len(content) // 2:]
    if damage == "missing":
        log.unlink()
    else:
        log.write_bytes(content)

    verified = run("verify", "--data", str(server.data))
    assert verified.returncode == 1
    assert "write-ahead log" in verified.stdout, verified
    message = starts_not(tmp_path)
    assert "--accept-lost-writes" in message, message
    if damage == "byte":
        assert "whole" in message and "commits" in message, message
    if damage != "missing":
        assert log.read_bytes() == content, "a start that is refused changes nothing"

    server = start(tmp_path, "--accept-lost-writes")
    try:
        with server.client() as client:
            found = client.shop.things.count_documents({})
            assert found < 3000
            assert len(list(client.shop.things.find())) == found
            client.shop.things.insert_one({"_id": "new"})
        assert "going on without" in server.log.read_text()
        if damage != "missing":
            copies = list(server.data.glob("selkie.sqlite-wal.damaged-*"))
            assert [copy.read_bytes() for copy in copies] == [bytes(content)]
    finally:
        server.kill()
    # It is reported once.
    server = start(tmp_path)
    server.remove()


@pytest.mark.selkie_only
def test_an_unfinished_commit_at_the_end_of_the_log_is_no_damage(tmp_path):
    server = write_and_kill(tmp_path, 1000)
    log = server.data / "selkie.sqlite-wal"
    with log.open("ab") as file:
        file.write(log.read_bytes()[32 : 32 + FRAME + 100])
    server = start(tmp_path)
    try:
        with server.client() as client:
            assert client.shop.things.count_documents({}) == 1000
    finally:
        server.remove()


def refused_after(client: pymongo.MongoClient, seconds: float, journaled: bool = False) -> float:
    """Writes until a write is refused; gives how long that took."""
    things = client.shop.get_collection("things", write_concern=pymongo.WriteConcern(w=1, j=journaled))
    begun = time.monotonic()
    while time.monotonic() < begun + seconds:
        try:
            things.insert_one({})
        except PyMongoError:
            return time.monotonic() - begun
    raise AssertionError("all writes were acknowledged")


@pytest.mark.selkie_only
@pytest.mark.parametrize("how", ["deleted", "replaced", "renamed"])
def test_writes_to_deleted_files_are_not_acknowledged(tmp_path, how):
    server = start(tmp_path)
    try:
        with server.client(retryWrites=False) as client:
            client.shop.things.insert_one({"_id": 1})
            if how == "renamed":
                server.data.rename(tmp_path / "elsewhere")
            else:
                shutil.rmtree(server.data)
            if how == "replaced":
                server.data.mkdir()
                for name in ("selkie.sqlite", "selkie.sqlite-wal"):
                    (server.data / name).write_bytes(b"")
            assert refused_after(client, 2) < 0.5
            time.sleep(0.1)
            for write in (
                lambda: client.shop.things.insert_one({}),
                lambda: client.shop.things.update_one({"_id": 1}, {"$set": {"a": 1}}),
                lambda: client.shop.others.create_index("a"),
                lambda: client.shop.things.drop(),
            ):
                with pytest.raises(PyMongoError, match="does not write any more"):
                    write()
            assert client.shop.things.find_one({"_id": 1})
        assert "no write is acknowledged any more" in server.log.read_text()
    finally:
        server.kill()


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* While there is a file at $FAULT, one sync of a file whose name ends in its content fails; then it is gone. */
static int fails(int fd) {
    const char *fault = getenv("FAULT");
    char wanted[256] = "", link[64], name[4096];
    int at = fault ? open(fault, O_RDONLY) : -1;
    if (at < 0) return 0;
    ssize_t length = read(at, wanted, sizeof wanted - 1);
    close(at);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t named = readlink(link, name, sizeof name - 1);
    if (length <= 0 || named < length || memcmp(name + named - length, wanted, length)) return 0;
    unlink(fault);
    errno = EIO;
    return 1;
}

int fsync(int fd) {
    return fails(fd) ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int fdatasync(int fd) {
    return fails(fd) ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory) -> Path:
    """A library by which syncs fail."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    library = folder / "shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "shim.c", "-ldl"], check=True)
    return library


@pytest.mark.selkie_only
@pytest.mark.parametrize("journaled", [False, True])
def test_nothing_is_acknowledged_after_a_failed_sync(tmp_path, shim, journaled):
    fault = tmp_path / "fault"
    server = start(tmp_path, environment={"LD_PRELOAD": str(shim), "FAULT": str(fault)})
    try:
        with server.client(retryWrites=False) as client:
            things = client.shop.get_collection("things", write_concern=pymongo.WriteConcern(j=True))
            things.insert_one({"_id": 1})
            fault.write_text("selkie.sqlite-wal")
            refused_after(client, 2, journaled)
            assert not fault.exists()
            # The next sync would succeed without an error for the earlier writes.
            for concern in (pymongo.WriteConcern(j=True), pymongo.WriteConcern(w=1), pymongo.WriteConcern("majority")):
                with pytest.raises(PyMongoError, match="could not be synced"):
                    client.shop.get_collection("things", write_concern=concern).insert_one({})
            assert things.find_one({"_id": 1})
        assert "could not be synced" in server.log.read_text()
        server.kill()
        server.environment = {}
        server.start()
        with server.client() as client:
            client.shop.things.insert_one({"_id": 2})
    finally:
        server.remove()


@pytest.mark.selkie_only
def test_a_full_disk_after_a_kill_lets_it_start(tmp_path):
    disk = tmp_path / "data"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting takes privileges")
    server = SelkieServer(tmp_path)
    try:
        server.start()
        # Closing the client of a dead server takes as long as server selection.
        with server.client(serverSelectionTimeoutMS=500) as client:
            things = client.shop.things
            for field in ("a", "b", "c"):
                things.create_index(field)
            for first in range(0, 20_000, 1000):
                things.insert_many([{"_id": n, "a": n * 7919 % 20011, "b": str(n * 31 % 997), "c": n % 100}
                                    for n in range(first, first + 1000)])
            # The last batch's entries have not come yet.
            server.kill()
        with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))
        assert shutil.disk_usage(disk).free < 4096

        server.start()
        with server.client(retryWrites=False) as client:
            things = client.shop.things
            assert things.count_documents({"c": 5}) == 200
            assert len(list(things.find({}, {"_id": 1}))) == 20_000
            assert things.find_one({"a": 7919})["_id"] == 1
            with pytest.raises(PyMongoError) as raised:
                for n in range(20_000):
                    things.insert_one({"_id": f"more {n}", "pad": "x" * 5000})
            assert raised.value.code == 14031
            for n in range(100):
                assert things.delete_one({"_id": n}).deleted_count == 1
            (disk / "filler").unlink()
            end = time.monotonic() + 10
            while True:
                with contextlib.suppress(PyMongoError):
                    things.insert_one({"_id": "again"})
                    break
                assert time.monotonic() < end, "it does not write though there is room again"
                time.sleep(0.1)
            assert things.count_documents({"c": 5}) == 199
            assert client.shop.command("validate", "things")["valid"]
    finally:
        server.kill()
        subprocess.run(["umount", disk], check=True)


@pytest.mark.selkie_only
def test_reads_go_on_where_index_entries_cannot_be_written(tmp_path, shim):
    fault = tmp_path / "fault"
    server = start(tmp_path, environment={"LD_PRELOAD": str(shim), "FAULT": str(fault)})
    try:
        with server.client(retryWrites=False) as client:
            things = client.shop.get_collection("things", write_concern=pymongo.WriteConcern(j=True))
            things.create_index("a")
            # Nothing is left to be synced when the fault begins.
            things.insert_one({"_id": -1})
            fault.write_text("selkie.sqlite-wal")
            # The documents are written, the sync fails, and their index entries cannot be written
            # any more.
            with pytest.raises(PyMongoError, match="could not be synced"):
                things.insert_many([{"_id": n, "a": n % 10} for n in range(1000)])
            time.sleep(0.2)
            assert things.count_documents({"a": 5}) == 100
            assert [it["_id"] for it in things.find({"a": 5}).sort("_id", 1).limit(2)] == [5, 15]
        log = server.log.read_text()
        assert log.count("deferred index entries could not be applied") <= 1, log
    finally:
        server.remove()
