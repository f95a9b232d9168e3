"""TLS: the modes on one port, certificates of both sides, versions, large messages, reload."""

import os
import signal
import socket
import ssl
import threading
import time

import pytest
from pymongo.errors import OperationFailure, ServerSelectionTimeoutError

from support.authority import CLIENT_USE, SERVER_USE, Authority, serial
from support.node import run as run_node
from support.selkie import run
from support.tls import Raw, TlsServer, context, message, refusal

pytestmark = [pytest.mark.selkie_only, pytest.mark.timeout(300)]

# How many connections stay open while certificates change.
CONNECTIONS = int(os.environ.get("SELKIE_TLS_CONNECTIONS", "200"))


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def server_file(authority):
    return authority.issue("server.pem")


@pytest.fixture
def start(tmp_path, authority, server_file):
    """A function that starts a server of a mode."""
    started = []

    def start(mode: str, *options: str, client=None, certificate=server_file) -> TlsServer:
        files = () if mode == "off" else ("--tls-certificate", str(certificate))
        server = TlsServer(tmp_path / str(len(started)), "--tls", mode, *files, *options, ca=authority.file, client=client)
        started.append(server.start())
        return server

    yield start
    for server in started:
        server.remove()


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory, authority, server_file):
    """A server that requires TLS, with verified clients, for the tests that do not stop it."""
    client = authority.issue("client.pem", usages=(CLIENT_USE,), common_name="client")
    revoked = authority.issue("revoked.pem", usages=(CLIENT_USE,), common_name="revoked")
    options = ("--tls", "require", "--tls-certificate", str(server_file), "--tls-ca", str(authority.file),
               "--tls-crl", str(authority.revoke("revoked.crl", revoked)))
    server = TlsServer(tmp_path_factory.mktemp("tls"), *options, ca=authority.file, client=client).start()
    server.revoked_file = revoked
    yield server
    assert server.stop() == 0, server.end_of_log()
    server.remove()


def said(server: TlsServer, text: str, timeout_s: float = 10) -> bool:
    """Waits until the log has a text."""
    end = time.monotonic() + timeout_s
    while text not in server.log.read_text(errors="replace"):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("mode, plain, encrypted", [
    ("off", True, False), ("allow", True, True), ("prefer", True, True), ("require", False, True),
])
def test_the_first_bytes_decide_on_one_port(start, authority, mode, plain, encrypted):
    server = start(mode)
    if plain:
        assert Raw(server.port, None).ask({"ping": 1})["ok"] == 1
        # The length of this message, 790, begins with the bytes of a TLS record.
        connection = Raw(server.port, None)
        filler = "x" * (790 - len(message({"ping": 1, "comment": "", "$db": "admin"})))
        assert len(message({"ping": 1, "comment": filler, "$db": "admin"})) == 0x0316
        with socket.create_connection(("127.0.0.1", server.port)) as begins_with_it:
            connection.socket = begins_with_it
            begins_with_it.settimeout(10)
            assert connection.ask({"ping": 1, "comment": filler})["ok"] == 1
    else:
        refusal(server.port, None)
        assert said(server, "The server is configured to only allow SSL connections")
    if encrypted:
        assert Raw(server.port, context(authority.file)).ask({"ping": 1})["ok"] == 1
        with server.tls_client() as client:
            client.test.c.insert_one({"_id": 1})
            assert client.test.c.find_one() == {"_id": 1}
    else:
        refusal(server.port, context(authority.file))
        assert said(server, "SSL handshake received but server is started without SSL support")
    assert server.stop() == 0


def test_a_client_hello_may_arrive_in_pieces(encrypted):
    """Byte by byte, and with other clients served meanwhile."""
    near, far = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context(encrypted.ca, encrypted.client_file).wrap_bio(near, far, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", encrypted.port), timeout=10) as connection:
        with pytest.raises(ssl.SSLWantReadError):
            session.do_handshake()
        for byte in far.read():
            connection.sendall(bytes([byte]))
        while True:
            near.write(connection.recv(1 << 16))
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                continue
    assert session.version() == "TLSv1.3"


def test_clients_are_verified(encrypted, authority, tmp_path):
    other = Authority(tmp_path, "Other CA")
    files = {
        "CertificateRequired": None,
        "UnknownIssuer": other.issue("stranger.pem", usages=(CLIENT_USE,)),
        "Expired": authority.issue("expired.pem", usages=(CLIENT_USE,), hours=(-2, -1)),
        "NotValidForPurpose": authority.issue("server-use.pem", usages=(SERVER_USE,)),
        "Revoked": encrypted.revoked_file,
    }
    for reason, file in files.items():
        refusal(encrypted.port, context(authority.file, file))
    log = encrypted.log.read_text()
    for reason in ("peer sent no certificates", "UnknownIssuer", "certificate expired", "Revoked"):
        assert reason in log, log[-3000:]
    assert Raw(encrypted.port, context(authority.file, encrypted.client_file)).ask({"ping": 1})["ok"] == 1


def test_servers_are_verified_by_clients(start, authority, tmp_path):
    server = start("require")
    other = Authority(tmp_path, "Other CA")
    assert "CERTIFICATE_VERIFY_FAILED" in refusal(server.port, context(other.file))
    assert "Hostname mismatch" in refusal(server.port, context(authority.file), host="elsewhere")
    with server.tls_client(tlsCAFile=str(other.file), serverSelectionTimeoutMS=500) as client:
        with pytest.raises(ServerSelectionTimeoutError, match="certificate verify failed"):
            client.admin.command("ping")


def test_optional_certificates(start, authority, tmp_path):
    server = start("require", "--tls-ca", str(authority.file), "--tls-client-certificates", "optional")
    assert Raw(server.port, context(authority.file)).ask({"ping": 1})["ok"] == 1
    file = authority.issue("optional.pem", usages=(CLIENT_USE,))
    assert Raw(server.port, context(authority.file, file)).ask({"ping": 1})["ok"] == 1
    stranger = Authority(tmp_path, "Other CA").issue("stranger.pem", usages=(CLIENT_USE,))
    refusal(server.port, context(authority.file, stranger))


def test_old_versions_are_refused(start, authority):
    def of_version(version: ssl.TLSVersion) -> ssl.SSLContext:
        settings = context(authority.file)
        settings.set_ciphers("ALL:@SECLEVEL=0")
        settings.minimum_version = ssl.TLSVersion.TLSv1
        settings.maximum_version = version
        return settings

    server = start("require")
    refusal(server.port, of_version(ssl.TLSVersion.TLSv1_1))
    old = Raw(server.port, of_version(ssl.TLSVersion.TLSv1_2))
    assert old.socket.version() == "TLSv1.2" and old.ask({"ping": 1})["ok"] == 1
    assert Raw(server.port, context(authority.file)).socket.version() == "TLSv1.3"
    counts = Raw(server.port, context(authority.file)).ask({"serverStatus": 1})["transportSecurity"]
    assert counts["1.0"] == counts["1.1"] == 0 and counts["1.2"] == 1 and counts["1.3"] >= 2

    strict = start("require", "--tls-min-version", "1.3")
    refusal(strict.port, of_version(ssl.TLSVersion.TLSv1_2))
    assert Raw(strict.port, context(authority.file)).socket.version() == "TLSv1.3"


@pytest.mark.parametrize("compressors", ["", "zstd", "snappy", "zlib"])
def test_large_messages(encrypted, compressors):
    options = {"compressors": compressors} if compressors else {}
    with encrypted.tls_client(**options) as client:
        collection = client[f"large{compressors}"].c
        pieces = [os.urandom(15_000_000) if not compressors else bytes(range(250)) * 60_000, b"", b"x"]
        collection.insert_many([{"_id": number, "data": data} for number, data in enumerate(pieces)])
        for _ in range(3):
            assert [document["data"] for document in collection.find().sort("_id")] == pieces
        for number, data in enumerate(pieces):
            assert collection.find_one({"_id": number})["data"] == data


def test_a_slow_reader_gets_everything_and_fills_no_memory(encrypted):
    with encrypted.tls_client() as client:
        client.slow.c.insert_many([{"_id": number, "data": b"y" * 15_000_000} for number in range(4)])
    connections = [Raw(encrypted.port, context(encrypted.ca, encrypted.client_file)) for _ in range(8)]
    for connection in connections:
        connection.socket.settimeout(60)
        connection.socket.sendall(message({"find": "c", "filter": {"_id": 1}, "$db": "slow"}))
    time.sleep(1)
    # Others are served meanwhile.
    with encrypted.tls_client() as client:
        assert client.admin.command("ping")["ok"] == 1
    for connection in connections:
        length = int.from_bytes(connection.read(4), "little")
        received = bytearray()
        while len(received) < length - 4:
            received += connection.socket.recv(100_000)
        assert received.count(b"y" * 1_000_000) == 15
        assert connection.ask({"ping": 1})["ok"] == 1
        connection.close()


def test_node(encrypted, tmp_path):
    uri = f"mongodb://localhost:{encrypted.port}/?directConnection=true"
    output = run_node(["node", "tls.mjs", uri, str(encrypted.ca), str(encrypted.client_file)], tmp_path)
    assert output.count("ok ") == 4


def test_it_reports_its_settings_and_certificate(encrypted, server_file):
    with encrypted.tls_client() as client:
        tls = client.admin.command("getCmdLineOpts")["parsed"]["net"]["tls"]
        assert tls["mode"] == "requireTLS" and tls["certificateKeyFile"] == str(server_file)
        assert tls["CAFile"] == str(encrypted.ca) and "CRLFile" in tls
        status = client.admin.command("serverStatus")
        security = status["security"]
        assert security["SSLServerSubjectName"] == "CN=server,O=Tests\\, Inc,C=CH"
        assert security["SSLServerHasCertificateAuthority"] is True
        assert security["SSLServerCertificateExpirationDate"].timestamp() > time.time()
        assert list(status["transportSecurity"]) == ["1.0", "1.1", "1.2", "1.3", "unknown"]


def test_rotate_certificates_checks_its_fields(encrypted):
    with encrypted.tls_client() as client:
        admin = client.admin
        assert admin.command({"rotateCertificates": 1, "message": "noted"})["ok"] == 1
        assert said(encrypted, "noted")
        for command, code, text in [
            ({"rotateCertificates": 1, "message": 5}, 14,
             "BSON field 'rotateCertificates.message' is the wrong type 'int', expected type 'string'"),
            ({"rotateCertificates": 1, "x": 5}, 40415, "BSON field 'rotateCertificates.x' is an unknown field."),
        ]:
            with pytest.raises(OperationFailure) as failed:
                admin.command(command)
            assert (failed.value.code, failed.value.details["errmsg"]) == (code, text)
        with pytest.raises(OperationFailure) as failed:
            client.other.command({"rotateCertificates": 1})
        assert failed.value.code == 13


def test_certificates_change_under_open_connections(start, authority):
    """By command, by signal, and by a change of the file; a broken file changes nothing."""
    file = authority.issue("changing.pem")
    server = start("require", certificate=file)
    first, settings = serial(file), context(authority.file)
    connections = [Raw(server.port, settings) for _ in range(CONNECTIONS)]
    old = first

    def is_new() -> bool:
        connection = Raw(server.port, settings)
        found = connection.certificate()
        connection.close()
        assert found in (old, serial(file))
        return found == serial(file)

    def wait_until_new():
        end = time.monotonic() + 15
        while not is_new():
            assert time.monotonic() < end, server.end_of_log()
            time.sleep(0.1)

    def by_file():
        pass

    def by_signal():
        os.kill(server.pid, signal.SIGHUP)

    def by_command():
        assert connections[0].ask({"rotateCertificates": 1})["ok"] == 1
        assert is_new(), "the next handshake has it"

    for change in (by_command, by_signal, by_file):
        authority.issue("changing.pem")
        change()
        wait_until_new()
        assert all(connection.ask({"ping": 1})["ok"] == 1 for connection in connections)
        assert all(connection.certificate() == first for connection in connections)
        old = serial(file)

    authority.write("changing.pem", "-----BEGIN CERTIFICATE-----\nbroken\n")
    reply = connections[0].ask({"rotateCertificates": 1})
    assert (reply["ok"], reply["code"], reply["codeName"]) == (0, 140, "InvalidSSLConfiguration")
    assert said(server, "the earlier ones stay in use")
    connection = Raw(server.port, settings)
    assert connection.certificate() == old
    assert all(connection.ask({"ping": 1})["ok"] == 1 for connection in connections)
    assert server.stop() == 0


def test_an_authority_and_a_revocation_change_for_new_connections(start, authority, tmp_path):
    client = authority.issue("leaving.pem", usages=(CLIENT_USE,))
    revocations = authority.revoke("changing.crl")
    server = start("require", "--tls-ca", str(authority.file), "--tls-crl", str(revocations), client=client)
    settings = context(authority.file, client)
    connection = Raw(server.port, settings)
    authority.revoke("changing.crl", client)
    assert connection.ask({"rotateCertificates": 1})["ok"] == 1
    refusal(server.port, settings)
    assert connection.ask({"ping": 1})["ok"] == 1
    connection.close()


def test_draining_ends_connections_in_good_order(start, authority):
    server = start("require")
    idle = Raw(server.port, context(authority.file))
    busy = Raw(server.port, context(authority.file))
    topology = busy.ask({"hello": 1})["topologyVersion"]
    replies = []
    waiting = threading.Thread(
        target=lambda: replies.append(busy.ask({"hello": 1, "topologyVersion": topology, "maxAwaitTimeMS": 60_000}))
    )
    waiting.start()
    time.sleep(0.3)
    assert server.stop() == 0
    waiting.join(10)
    assert replies and replies[0]["ok"] == 1, "the request under way was answered"
    # Not an error: the server announces the end.
    assert idle.socket.recv(1) == b"" and busy.socket.recv(1) == b""


def test_a_client_that_hangs_up_ends_its_operation(encrypted):
    with encrypted.tls_client() as client:
        client.hang.c.insert_many([{"_id": number} for number in range(3000)])
        connection = Raw(encrypted.port, context(encrypted.ca, encrypted.client_file))
        join = {"$lookup": {"from": "c", "pipeline": [{"$match": {"$expr": {"$lt": ["$_id", -1]}}}], "as": "x"}}
        pipeline = [join, {"$lookup": {"from": "c", "pipeline": [join], "as": "y"}}]
        connection.socket.sendall(message({"aggregate": "c", "pipeline": pipeline, "cursor": {}, "$db": "hang"}))

        def running() -> bool:
            return any(operation.get("ns") == "hang.c" and "aggregate" in operation["command"]
                       for operation in client.admin.command("currentOp")["inprog"])

        end = time.monotonic() + 10
        while not running():
            assert time.monotonic() < end
        connection.close()
        end = time.monotonic() + 10
        while running():
            assert time.monotonic() < end, "it still runs"
            time.sleep(0.05)


def test_nonsense_is_refused_at_the_start(authority, server_file, tmp_path):
    expired = authority.issue("expired-server.pem", hours=(-2, -1))
    readable = authority.issue("readable.pem")
    readable.chmod(0o644)
    key = tmp_path / "other.key"
    key.write_text("-----BEGIN PRIVATE KEY" + authority.issue("other.pem").read_text().split("-----BEGIN PRIVATE KEY")[1])
    key.chmod(0o600)
    certificate, ca = str(server_file), str(authority.file)
    for arguments, expected in [
        (("--tls", "require"), "--tls-certificate"),
        (("--tls-certificate", certificate), "set --tls"),
        (("--tls", "off", "--tls-min-version", "1.3"), "set --tls"),
        (("--tls", "sometimes"), "write one of off, allow, prefer, require"),
        (("--tls", "require", "--tls-certificate", certificate, "--tls-min-version", "1.1"), "write one of 1.2, 1.3"),
        (("--tls", "require", "--tls-certificate", str(tmp_path / "none.pem")), "does not exist"),
        (("--tls", "require", "--tls-certificate", str(expired)), "expired at"),
        (("--tls", "require", "--tls-certificate", str(readable)), "chmod o-r"),
        (("--tls", "require", "--tls-certificate", certificate, "--tls-key", str(key)), "does not belong to"),
        (("--tls", "require", "--tls-certificate", certificate, "--tls-client-certificates", "required"), "--tls-ca"),
        (("--tls", "require", "--tls-certificate", certificate, "--tls-ca", ca, "--tls-client-certificates", "none"),
         "--tls-client-certificates"),
        (("--tls", "require", "--tls-certificate", certificate, "--tls-crl", ca), "--tls-ca"),
    ]:
        for command in ("check", "serve"):
            outcome = run(command, "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", *arguments)
            assert outcome.returncode != 0 and expected in outcome.stderr, (arguments, outcome.stderr)
            errors = [line for line in outcome.stderr.splitlines() if " INFO " not in line]
            assert len(errors) == 1, outcome.stderr
    valid = run("check", "--tls", "require", "--tls-certificate", certificate, "--tls-ca", ca)
    assert valid.returncode == 0 and "TLS" in valid.stdout, valid.stderr


def test_clients_log_in_by_their_certificate(tmp_path, authority, server_file):
    known = authority.issue("known.pem", usages=(CLIENT_USE,), common_name="known")
    unknown = authority.issue("unknown.pem", usages=(CLIENT_USE,), common_name="unknown")
    options = ("--auth", "--tls", "require", "--tls-certificate", str(server_file), "--tls-ca", str(authority.file))
    server = TlsServer(tmp_path / "x509", *options, ca=authority.file, client=known).start()
    try:
        with server.tls_client() as first:
            # Allowed by the localhost exception.
            first.admin.command("createUser", "root", pwd="secret", roles=["root"])
        with server.tls_client(username="root", password="secret") as root:
            root["$external"].command("createUser", "CN=known,O=Tests\\, Inc,C=CH", roles=[{"role": "read", "db": "shop"}])
        x509 = {"authMechanism": "MONGODB-X509"}
        with server.tls_client(**x509) as client:
            status = client.admin.command("connectionStatus")["authInfo"]
            assert status["authenticatedUsers"] == [{"user": "CN=known,O=Tests\\, Inc,C=CH", "db": "$external"}]
            assert list(client.shop.c.find()) == []
            with pytest.raises(OperationFailure, match="not authorized") as refused:
                client.shop.c.insert_one({})
            assert refused.value.code == 13
        files = {"tlsCertificateKeyFile": str(unknown)}
        with server.tls_client(**x509, **files) as client, pytest.raises(OperationFailure) as refused:
            client.shop.c.find_one()
        assert refused.value.code == 11
        with server.tls_client(**x509, username="CN=root") as client, pytest.raises(OperationFailure) as refused:
            client.shop.c.find_one()
        assert refused.value.code == 18
        assert server.stop() == 0, server.end_of_log()
    finally:
        server.remove()
