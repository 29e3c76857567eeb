"""Sends over several TCP connections at once and says how fast it went.

    tcp_load.py receive ADDRESS PORT                    until its standard input ends
    tcp_load.py send ADDRESS PORT FLOWS SECONDS         prints bits a second that arrived

Every connection begins with one byte each way, then the sender writes until the time is over and
closes its half; the receiver answers with how much it got. Source ports are a few apart and even,
as connect would choose them.
"""

from __future__ import annotations

import socket
import sys
import threading
import time

BLOCK = bytes(1 << 16)
FIRST_PORT = 40000


def serve_one(connection: socket.socket) -> None:
    """The receiving end of one connection."""
    with connection:
        connection.sendall(b"!")
        got = 0
        while piece := connection.recv(1 << 18):
            got += len(piece)
        connection.sendall(str(got).encode())


def accept_all(listener: socket.socket) -> None:
    """Serves each connection in a thread of its own."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve_one, args=(connection,), daemon=True).start()


def receive(address: str, port: int) -> None:
    """Listens, says so, and goes on until standard input ends."""
    listener = socket.create_server((address, port), backlog=64)
    threading.Thread(target=accept_all, args=(listener,), daemon=True).start()
    print("listening", flush=True)
    sys.stdin.read()


def send_one(connection: socket.socket, seconds: float, results: list[float]) -> None:
    """The sending end of one connection; adds bits a second."""
    with connection:
        start = time.monotonic()
        while time.monotonic() < start + seconds:
            connection.sendall(BLOCK)
        connection.shutdown(socket.SHUT_WR)
        got = int(connection.recv(64))  # all of it has arrived
        results.append(got * 8 / (time.monotonic() - start))


def send(address: str, port: int, flows: int, seconds: float) -> None:
    """All connections at once."""
    connections = []
    for number in range(flows):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.bind(("", FIRST_PORT + 2 * number))
        connection.connect((address, port))
        connection.recv(1)
        connections.append(connection)
    results: list[float] = []
    threads = [threading.Thread(target=send_one, args=(c, seconds, results)) for c in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(results))


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(sys.argv[2], int(sys.argv[3]))
    else:
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
