"""Gateways that share replies by way of Redis keep each other right."""

import threading
import time

import pytest

from blackbox.test_external_writes import LOGGING, until
from support.mariadb import MariadbServer
from support.redis import RedisServer
from support.selkie import SelkieServer, run

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]


class Site:
    """A MariaDB server, a Redis server and two gateways."""

    def __init__(self, folder, tls: bool):
        self.redis = RedisServer(folder / "r", tls).start()
        self.mariadb = MariadbServer(folder / "m", LOGGING).start()
        settings = folder / "selkie.toml"
        ca = f"storage-ca = '{self.redis.ca}'\n" if tls else ""
        settings.write_text(f"[cache]\nmode = 'documents'\nstorage = '{self.redis.url()}'\nstorage-timeout-ms = 2000\n{ca}")
        self.gateways = []
        for number in range(2):
            options = ("--threads", "2", "--config", str(settings))
            self.gateways.append(SelkieServer(folder / f"s{number}", self.mariadb, options).start())
        self.clients = [gateway.client(retryWrites=False) for gateway in self.gateways]
        self.a, self.b = [client.shop.cars for client in self.clients]

    def shared(self, number: int) -> dict:
        return self.clients[number].admin.command("serverStatus")["cache"]["shared"]

    def is_shared(self, key: int) -> bool:
        """Returns whether the second gateway serves the reply that the first has cached."""
        before = self.shared(1)["hits"]
        self.a.find_one({"_id": key, "round": {"$ne": time.monotonic_ns()}})
        question = {"_id": key, "round": {"$ne": time.monotonic_ns()}}
        stored = self.shared(0)["stored"]
        found = self.a.find_one(question)
        until(lambda: self.shared(0)["stored"] > stored, 2)
        assert self.b.find_one(question) == found
        return self.shared(1)["hits"] == before + 1

    def settle(self):
        """Waits until both follow the log and share."""
        deadline = time.monotonic() + 30
        while True:
            try:
                if self.is_shared(1):
                    return
            except AssertionError:
                assert time.monotonic() < deadline, (self.shared(0), self.shared(1))

    def remove(self):
        for client in self.clients:
            client.close()
        for gateway in self.gateways:
            assert gateway.is_running()
            gateway.kill()
        self.redis.kill()
        self.mariadb.remove()


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def site(store, tmp_path, request):
    site = Site(tmp_path, request.param)
    site.a.insert_many([{"_id": key, "v": 0} for key in range(4)])
    site.settle()
    yield site
    site.remove()


def test_replies_are_shared_and_never_older_than_own_writes(site):
    for number in range(1, 40):
        writer, reader = (site.a, site.b) if number % 2 else (site.b, site.a)
        key = number % 3
        reader.find_one({"_id": key})
        writer.update_one({"_id": key}, {"$set": {"v": number}})
        assert writer.find_one({"_id": key})["v"] == number
        until(lambda: reader.find_one({"_id": key})["v"] == number)
        assert writer.find_one({"_id": key})["v"] == number
    site.mariadb.sql("UPDATE shop.cars SET doc = JSON_SET(doc, '$.v', 1000)")
    for reader in (site.a, site.b):
        until(lambda: reader.find_one({"_id": 2})["v"] == 1000)
    site.settle()
    # A recreated collection is a different one.
    site.a.drop()
    until(lambda: site.b.find_one({"_id": 2}) is None)


def test_many_at_once_never_see_the_past_and_redis_may_go(site):
    """Readers and writers on both gateways, while Redis is killed and comes back. A gateway does
    not forget what it has acknowledged, nor for long what the other one has."""
    over, wrong = threading.Event(), []
    # Of each key, the acknowledged value and its time.
    acknowledged = [[(0.0, 0)] for _ in range(4)]

    def write(key: int):
        with site.gateways[key % 2].client(retryWrites=False) as client:
            number = 0
            while not over.is_set():
                number += 1
                client.shop.cars.update_one({"_id": key}, {"$set": {"v": number}})
                acknowledged[key].append((time.monotonic(), number))
                time.sleep(0.02)

    def read(key: int, which: int):
        patience = 0 if key % 2 == which else 2
        with site.gateways[which].client(retryWrites=False) as client:
            while not over.is_set():
                asked = time.monotonic()
                least = next(number for moment, number in reversed(acknowledged[key]) if moment <= asked - patience)
                seen = client.shop.cars.find_one({"_id": key})["v"]
                if seen < least:
                    wrong.append((key, which, seen, least))

    site.a.update_many({}, {"$set": {"v": 0}})
    until(lambda: all(document["v"] == 0 for document in site.b.find()))
    threads = [threading.Thread(target=write, args=(key,)) for key in range(4)]
    threads += [threading.Thread(target=read, args=(key, which)) for key in range(4) for which in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    site.redis.kill()
    time.sleep(2)
    site.redis.start()
    time.sleep(3)
    over.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:5]
    assert min(len(written) for written in acknowledged) > 20
    assert site.shared(0)["errors"] + site.shared(1)["errors"] > 0
    site.settle()


def test_errors_of_the_storage_are_reported_at_the_start(store, tmp_path):
    redis, mariadb = RedisServer(tmp_path / "r", tls=True).start(), MariadbServer(tmp_path / "m", LOGGING).start()
    settings = tmp_path / "selkie.toml"

    def refusal(more: str) -> str:
        settings.write_text(f"[cache]\nmode = 'documents'\n{more}\n")
        done = run("serve", "--listen", "127.0.0.1:0", "--mariadb", mariadb.url(), "--config", str(settings))
        assert done.returncode != 0
        return done.stderr

    try:
        assert "selkie.toml:3: cannot use Redis at 127.0.0.1:1: " in refusal("storage = 'redis://127.0.0.1:1'")
        ca = f"storage-ca = '{redis.ca}'"
        assert "WRONGPASS" in refusal(f"storage = '{redis.url('wrong')}'\n{ca}")
        stranger = RedisServer(tmp_path / "stranger", tls=True)
        assert "certificate" in refusal(f"storage = '{redis.url()}'\nstorage-ca = '{stranger.ca}'")
        assert "selkie.toml:3: with rediss://" in refusal(f"storage = '{redis.url()}'")
        assert "selkie.toml:4: cannot read certificates" in refusal(f"storage = '{redis.url()}'\nstorage-ca = '/nowhere'")
    finally:
        redis.kill()
        mariadb.remove()
