"""A proxy between a driver and a server that can break the connection."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable


class Proxy:
    """Listens beside a server. Subclasses serve the clients, each on a thread of its own."""

    def __init__(self, port: int):
        self.server = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client: socket.socket):
        raise NotImplementedError


class BreakingProxy(Proxy):
    """Forwards messages. A reply for which `swallow(request)` is true is not passed on: the
    connection to the client breaks instead, after the server has carried the request out."""

    def __init__(self, port: int, swallow: Callable[[bytes], bool]):
        self.swallow = swallow
        self.swallowed = 0
        super().__init__(port)

    def serve(self, client: socket.socket):
        """Request, reply, request, reply: drivers do not have two requests under way on one
        connection. Monitors that stream replies do, which is why tests connect with
        directConnection and polling monitors."""
        with client, socket.create_connection(self.server) as server:
            while request := read_message(client):
                server.sendall(request)
                reply = read_message(server)
                if self.swallow(request):
                    self.swallowed += 1
                    return
                if not reply:
                    return
                client.sendall(reply)


def read_message(connection: socket.socket) -> bytes:
    """One message, or nothing when the other side closes."""
    try:
        head = receive(connection, 4)
        return head + receive(connection, struct.unpack("<i", head)[0] - 4)
    except (ConnectionError, OSError):
        return b""


def receive(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ConnectionError("closed")
        data += piece
    return bytes(data)


class ReplacingProxy(Proxy):
    """Forwards bytes, and replaces a text of the client's by another one of the same length."""

    def __init__(self, port: int, text: bytes, replacement: bytes):
        assert len(text) == len(replacement)
        self.text, self.replacement = text, replacement
        self.replaced = 0
        super().__init__(port)

    def serve(self, client: socket.socket):
        try:
            server = socket.create_connection(self.server)
        except OSError:
            client.close()
            return
        for ends in ((client, server, self.replace), (server, client, lambda data: data)):
            threading.Thread(target=self.forward, args=ends, daemon=True).start()

    def replace(self, data: bytes) -> bytes:
        self.replaced += data.count(self.text)
        return data.replace(self.text, self.replacement)

    def forward(self, source: socket.socket, target: socket.socket, change: Callable[[bytes], bytes]):
        try:
            while data := source.recv(1 << 16):
                target.sendall(change(data))
        except OSError:
            pass
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
