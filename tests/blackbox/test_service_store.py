"""Documents in the servers of a service: the store follows the primary when it changes."""

import itertools
import threading
import time
from uuid import uuid4

import pytest
from bson import Binary, Int64
from pymongo.errors import OperationFailure, PyMongoError
from pymongo.read_preferences import Nearest, PrimaryPreferred, Secondary, SecondaryPreferred
from test_failover import ACCOUNTS, MONITOR, PRIMARY, REPLICA

from support.selkie import SelkieServer, program
from support.topology import Replication, until

pytestmark = [pytest.mark.selkie_only, pytest.mark.mariadb_only]

STORE = """
[store]
service = "app"
user = "documents"
password = "it's secret"
[cache]
mode = "both"
[service.app]
monitor = "main"
router = "read-write-split"
causal-reads = true
primary-wait-ms = {wait_ms}
"""

SECONDARY_PREFERRED = SecondaryPreferred()

# The privileges that the documentation names: an account without READ_ONLY ADMIN.
DOCUMENTS = (
    "CREATE USER documents@'%' IDENTIFIED BY 'it''s secret'",
    "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, TRIGGER ON *.* TO documents@'%'",
    "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO documents@'%'",
)


def tagged(sections: str) -> str:
    """Gives each server the tag of its own number."""
    for number in (1, 2, 3):
        sections = sections.replace(f"[server.db{number}]\n", f'[server.db{number}]\ntags = ["number:{number}", "all:yes"]\n')
    return sections


class Gateway(SelkieServer):
    """Selkie whose store is the service `app`."""

    def __init__(self, folder, replication: Replication, topology: str = "router", wait_ms: int = 20_000):
        super().__init__(folder)
        monitor = MONITOR.format(automatic="true").replace("enforce-read-only = true", "enforce-read-only = false")
        self.file = folder / "selkie.toml"
        self.file.write_text(
            f'listen = ["127.0.0.1:{self.port}"]\nthreads = 2\n[mongodb]\ntopology = "{topology}"\n'
            + STORE.format(wait_ms=wait_ms) + tagged(replication.sections()) + monitor
        )

    def command(self) -> list[str]:
        return [program(), "serve", "--config", str(self.file)]

    def status(self) -> dict:
        with self.client() as client:
            return client.admin.command("serverStatus")["selkie"]

    def roles(self) -> list[str]:
        return [server["role"] for server in self.status()["servers"].values()]

    def await_primary(self) -> int:
        """Waits until a server is the primary of the others; returns its number."""
        try:
            until(lambda: sorted(self.roles()) == ["primary", "replica", "replica"], 30)
        except AssertionError:
            raise AssertionError(f"{self.status()}\n{self.log.read_text()}") from None
        return self.roles().index("primary")


@pytest.fixture(scope="module")
def replication(store, tmp_path_factory):
    replication = Replication(tmp_path_factory.mktemp("replication"), (*REPLICA, "--binlog-format=ROW"))
    for statement in (*ACCOUNTS, *DOCUMENTS):
        replication.servers[0].sql(statement)
    # From now on, each waits for a replica when it is the primary.
    for server in replication.servers:
        server.options += ("--init-rpl-role=SLAVE", *(f"--{name}={value}" for name, value in PRIMARY.items()))
        for name, value in PRIMARY.items():
            server.sql(f"SET GLOBAL {name} = {value if value.isdigit() else repr(value)}")
    yield replication
    replication.remove()


@pytest.fixture(scope="module")
def start(replication, tmp_path_factory):
    gateways = {}

    def start(topology: str = "router", **options) -> Gateway:
        """Returns a gateway, which other tests use too."""
        key = (topology, *options.items())
        if key not in gateways:
            gateways[key] = Gateway(tmp_path_factory.mktemp("gateway"), replication, topology, **options).start()
        gateways[key].await_primary()
        return gateways[key]

    yield start
    for gateway in gateways.values():
        assert gateway.is_running()
        assert "secret" not in gateway.log.read_text()
        gateway.remove()


class Application:
    """Clients that write, read and count without handling errors, as applications do."""

    def __init__(self, gateway: Gateway, name: str, clients: int = 3):
        self.acknowledged, self.errors, self.longest = [], [], 0.0
        self.is_over = False
        self.client = gateway.client(retryWrites=True, retryReads=True)
        self.collection = self.client.d[name]
        self.collection.create_index("a")
        self.threads = [threading.Thread(target=self.work, args=(number,), daemon=True) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def work(self, client: int):
        counter = 0
        while not self.is_over:
            begun, number = time.monotonic(), (client, counter)
            try:
                self.collection.insert_one({"_id": f"{client}-{counter}", "a": counter})
                self.acknowledged.append(f"{client}-{counter}")
                assert self.collection.find_one({"_id": f"{client}-{counter}"})["a"] == counter
                self.collection.update_one({"_id": f"total {client}"}, {"$inc": {"n": 1}}, upsert=True)
                assert self.collection.find_one({"_id": f"total {client}"})["n"] == counter + 1
                assert [d["_id"] for d in self.collection.find({"a": counter, "_id": f"{client}-{counter}"})]
            except (PyMongoError, AssertionError) as error:
                self.errors.append((number, repr(error)))
            self.longest = max(self.longest, time.monotonic() - begun)
            counter += 1

    def await_more(self, count: int = 12):
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + count, 40)

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join(40)
        print(f"{len(self.acknowledged)} inserts, the longest round took {self.longest:.2f} s")
        assert not self.errors, self.errors[:5]
        assert {d["_id"] for d in self.collection.find({}, {"_id": 1})} >= set(self.acknowledged)
        self.client.close()


def test_applications_see_no_error_when_the_primary_is_killed(start, replication):
    gateways = [start("router"), start("replica-set")]
    applications = [Application(gateway, f"killed{number}", 2) for number, gateway in enumerate(gateways)]
    for application in applications:
        application.await_more()
    old = gateways[0].await_primary()
    replication.servers[old].kill()
    for application in applications:
        application.await_more()
    replication.servers[old].start()
    gateways[0].await_primary()
    for application in applications:
        application.await_more()
        application.end()


def switch_over(new: int, *clients):
    """Makes another server the primary, at the gateway that holds the servers' locks."""
    end = time.monotonic() + 20
    for client in itertools.cycle(clients):
        try:
            client.admin.command({"selkieMonitor": "main", "switchover": f"db{new + 1}"})
            return
        except OperationFailure as error:
            if error.code != 96 or time.monotonic() > end:
                raise
        time.sleep(0.1)


def test_applications_see_no_error_during_switchovers(start):
    gateways = [start("router"), start("replica-set")]
    applications = [Application(gateway, f"switched{number}", 2) for number, gateway in enumerate(gateways)]
    for _ in range(2):
        for application in applications:
            application.await_more()
        new = (gateways[0].await_primary() + 1) % 3
        switch_over(new, applications[0].client)
        assert gateways[0].await_primary() == new
    for application in applications:
        application.await_more()
        application.end()


def test_change_streams_go_on_at_another_primary(start, replication):
    gateway = start("replica-set")
    with gateway.client(retryWrites=True) as client, start().client() as other:
        things = client.d.streamed
        with things.watch(max_await_time_ms=100) as stream:
            seen = []
            for round in range(3):
                things.insert_many([{"_id": round * 10 + number} for number in range(10)])
                if round == 0:
                    seen.append(next(stream))
                    first = seen[0]["_id"]
                    replication.servers[gateway.await_primary()].kill()
                elif round == 1:
                    for server in replication.servers:
                        if not server.is_running():
                            server.start()
                    new = (gateway.await_primary() + 1) % 3
                    switch_over(new, client, other)
            seen += [next(stream) for _ in range(29)]
        assert [change["documentKey"]["_id"] for change in seen] == [*range(30)]
        # Positions are the same in the other server's log.
        gateway.kill()
        gateway.start()
        gateway.await_primary()
        with things.watch(resume_after=first) as stream:
            again = [next(stream) for _ in range(29)]
        assert again == seen[1:]


def test_without_a_primary(start):
    gateway = start("router", wait_ms=300)
    with gateway.client() as client:
        client.d.waiting.insert_one({"_id": 1})
        primary = gateway.await_primary() + 1
        client.admin.command({"selkieServer": f"db{primary}", "mode": "maintenance"})
        assert "primary" not in gateway.status()["store"]
        assert client.admin.command("hello")["isWritablePrimary"]
        for work in (lambda: client.d.waiting.insert_one({"_id": 2}), lambda: client.d.waiting.find_one({"_id": 1})):
            with pytest.raises(PyMongoError) as failed:
                work()
            assert failed.value.code == 6 and "service app has no primary" in str(failed.value)
        # Replicas are still read.
        assert client.d.get_collection("waiting", read_preference=SECONDARY_PREFERRED).find_one({"_id": 1})
        with pytest.raises(PyMongoError) as failed:
            client.d.command({"insert": "waiting", "documents": [{"_id": 2}], "lsid": {"id": Binary.from_uuid(uuid4())}, "txnNumber": Int64(1)})
        assert failed.value.has_error_label("RetryableWriteError")
        client.admin.command({"selkieServer": f"db{primary}", "mode": "active"})
        client.d.waiting.insert_one({"_id": 2})
        store = gateway.status()["store"]
        assert (store["service"], store["primary"]) == ("app", f"db{primary}")


def test_a_replica_set_without_a_primary_has_a_secondary(start):
    gateway = start("replica-set")
    with gateway.client() as client:
        primary = gateway.await_primary() + 1
        first = client.admin.command("hello")
        assert first["isWritablePrimary"] and not first["secondary"] and first["primary"] == first["me"]
        client.admin.command({"selkieServer": f"db{primary}", "mode": "maintenance"})
        # The monitoring of drivers waits in this way.
        hello = {"hello": 1, "topologyVersion": first["topologyVersion"], "maxAwaitTimeMS": 20_000}
        with gateway.client(directConnection=True) as direct:
            second = direct.admin.command(hello)
            assert not second["isWritablePrimary"] and second["secondary"] and "primary" not in second
            writing = threading.Thread(target=lambda: client.d.waiting.insert_one({"_id": 3}))
            writing.start()
            direct.admin.command({"selkieServer": f"db{primary}", "mode": "active"})
            writing.join(20)
            assert direct.d.waiting.find_one({"_id": 3})


def test_cached_replies_follow_the_primary(start, replication):
    gateway = start("router")
    with gateway.client() as client:
        cars = client.d.cars
        cars.insert_one({"_id": 1, "n": 0})

        def is_cached() -> bool:
            cars.find_one({"_id": 1})
            before = client.admin.command("serverStatus")["cache"]["hits"]
            cars.find_one({"_id": 1})
            return client.admin.command("serverStatus")["cache"]["hits"] > before

        until(is_cached)
        new = (gateway.await_primary() + 1) % 3
        switch_over(new, client)
        assert gateway.await_primary() == new
        until(is_cached)
        assert "it has everything that was read" in gateway.log.read_text()
        # SQL clients write to the new primary.
        replication.servers[new].sql("UPDATE d.cars SET doc = JSON_SET(doc, '$.n', 5)")
        until(lambda: cars.find_one({"_id": 1})["n"] == 5, 5)
        replication.servers[new].kill()
        until(lambda: gateway.status()["monitors"]["main"].get("primary") not in (None, f"db{new + 1}"), 30)
        assert cars.find_one({"_id": 1})["n"] == 5
        until(is_cached)
        primary = replication.servers[gateway.roles().index("primary")]
        primary.sql("UPDATE d.cars SET doc = JSON_SET(doc, '$.n', 6)")
        until(lambda: cars.find_one({"_id": 1})["n"] == 6, 5)
        replication.servers[new].start()
        gateway.await_primary()


@pytest.fixture
def marked(start, replication):
    """A collection whose document names the server that was read, and the number of the primary."""
    gateway = start("router")
    primary = gateway.await_primary() + 1
    with gateway.client() as client:
        client.d.marks.drop()
        client.d.marks.insert_many([{"_id": 1, "n": 0}, {"_id": "more"}])
        for number, server in enumerate(replication.servers, 1):
            until(lambda server=server: server.sql("SELECT COUNT(*) FROM d.marks") == ((2,),))
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute("SET sql_log_bin = 0")
                cursor.execute("UPDATE d.marks SET doc = JSON_SET(doc, '$.n', %s) WHERE JSON_VALUE(doc, '$._id') = '1'", (number,))
        yield gateway, client, primary


def readers(client, preference, count: int = 6) -> set[int]:
    """Returns the numbers of the servers that reads with a preference have seen."""
    marks = client.d.get_collection("marks", read_preference=preference)
    found = set()
    for _ in range(count):
        found |= {marks.find_one({"_id": 1})["n"]}
        found |= {d["n"] for d in marks.aggregate([{"$match": {"n": {"$exists": True}}}])}
        found |= set(marks.distinct("n"))
    return found


def test_read_preferences(marked):
    gateway, client, primary = marked
    replicas = {1, 2, 3} - {primary}
    # A cached reply of one server is not sent for another.
    for _ in range(2):
        until(lambda: readers(client, None) == {primary}, 5)
        assert readers(client, PrimaryPreferred()) == {primary}
        assert readers(client, Secondary()) == readers(client, SecondaryPreferred(max_staleness=90)) == replicas
        assert readers(client, Nearest(), 10) == {1, 2, 3}
    one = min(replicas)
    assert readers(client, Secondary([{"number": "9"}, {"number": str(one), "all": "yes"}])) == {one}
    assert readers(client, SecondaryPreferred([{"number": "9"}])) == {primary}
    with pytest.raises(OperationFailure) as failed:
        readers(client, Secondary([{"number": str(primary)}]))
    assert failed.value.code == 133 and 'mode: "secondary"' in str(failed.value)
    assert gateway.status()["store"]["readsOnReplicas"] > 0
    # Writes go to the primary.
    marks = client.d.get_collection("marks", read_preference=Secondary())
    marks.aggregate([{"$match": {"_id": 1}}, {"$out": "copied"}])
    assert client.d.copied.find_one({"_id": 1})["n"] == primary
    for number in replicas:
        client.admin.command({"selkieServer": f"db{number}", "mode": "maintenance"})
    try:
        assert readers(client, SecondaryPreferred(), 1) == {primary}
        with pytest.raises(OperationFailure) as failed:
            readers(client, Secondary(), 1)
        assert failed.value.code == 133
    finally:
        for number in replicas:
            client.admin.command({"selkieServer": f"db{number}", "mode": "active"})


def test_cursors_go_on_at_another_replica(marked):
    gateway, client, primary = marked
    client.d.many.insert_many([{"_id": number} for number in range(100)])
    many = client.d.get_collection("many", read_preference=Secondary())
    replicas = {1, 2, 3} - {primary}
    for lost in sorted(replicas):
        with many.find({}, batch_size=10) as cursor:
            found = [next(cursor)["_id"]]
            client.admin.command({"selkieServer": f"db{lost}", "mode": "maintenance"})
            try:
                found += [document["_id"] for document in cursor]
            finally:
                client.admin.command({"selkieServer": f"db{lost}", "mode": "active"})
        assert found == list(range(100))


def test_reads_on_replicas_see_the_writes_before_them(start):
    gateway = start("router")
    with gateway.client() as client:
        own = client.d.get_collection("own", read_preference=Secondary())
        for number in range(10):
            client.d.own.insert_one({"_id": number})
            assert own.find_one({"_id": number}) and own.count_documents({}) == number + 1
    assert gateway.status()["store"]["causalWaits"] >= 20
