"""Several hosts on one machine: network namespaces on one bridge, for tests that cross a network.

Host k (from 1) has the addresses 10.77.0.k and fd77::k on eth0. Each also has a decoy: an interface
docker0 that is up and has the same address on every host, as container engines leave behind. Needs
root, iproute2 and util-linux.

A namespace lives as long as the sleeping process that holds it, so nothing is left behind even when
the tests are killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

# The longest that a set of hosts is needed, should nobody be left to remove it.
LIFETIME_S = 600
# In place of ssh, for mpirun.
REMOTE_SHELL = Path(__file__).parent / "remote_shell.sh"


def missing() -> str:
    """Why hosts can not be made here, or an empty text."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for program in ("ip", "tc", "unshare", "nsenter"):
        if shutil.which(program) is None:
            return f"network namespaces need the program {program} (iproute2, util-linux)"
    probe = subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True)
    return "" if probe.returncode == 0 else "this system makes no network namespaces"


class Namespace:
    """One network namespace and the process that holds it."""

    def __init__(self, lifetime_s: int) -> None:
        words = ["unshare", "--net", "sh", "-c", f"echo ready; exec sleep {lifetime_s}"]
        self._holder = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self._holder.stdout.readline()

    @property
    def pid(self) -> str:
        """The process, as ip names the namespace."""
        return str(self._holder.pid)

    def command(self, *words: str) -> list[str]:
        """The command line that runs `words` in this namespace."""
        return ["nsenter", "--target", self.pid, "--net", *words]

    def ip(self, *words: str) -> None:
        """Changes this namespace, e.g. ip("link", "set", "eth0", "down")."""
        subprocess.run(self.command("ip", *words), check=True, capture_output=True, text=True)

    def remove(self) -> None:
        """Ends the holder, and with it the namespace."""
        self._holder.kill()
        self._holder.wait()
        self._holder.stdout.close()


@dataclass(frozen=True)
class Host:
    """One host: its namespace and its addresses."""

    namespace: Namespace
    ipv4: str
    ipv6: str

    def command(self, *words: str) -> list[str]:
        """The command line that runs `words` on this host."""
        return self.namespace.command(*words)

    def ip(self, *words: str) -> None:
        """Changes this host's network."""
        self.namespace.ip(*words)

    def control_congestion(self, algorithm: str) -> None:
        """Connections to the other hosts that begin from now on use it, e.g. "cubic"."""
        # By the route: a namespace's own default may only be what the whole system allows.
        route = ["10.77.0.0/24", "dev", "eth0", "proto", "kernel", "scope", "link"]
        self.ip("route", "change", *route, "src", self.ipv4, "congctl", algorithm)

    def limit(self, rate: str) -> None:
        """Lets no more leave through eth0 than `rate`, as tc writes it: "200mbit"."""
        shape = ["tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate]
        # burst: a packet of 64 KiB as the kernel cuts it itself, and what leaves in one tick
        command = self.command(*shape, "burst", "128kb", "limit", "2mb")
        subprocess.run(command, check=True, capture_output=True, text=True)

    def bytes_sent(self) -> int:
        """What has left through eth0 so far."""
        command = self.command("cat", "/proc/net/dev")
        table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        [line] = [line for line in table.splitlines() if line.strip().startswith("eth0:")]
        return int(line.split(":")[1].split()[8])


class Hosts:
    """A context that holds `count` hosts and removes them, whatever happened in between."""

    def __init__(self, count: int, lifetime_s: int = LIFETIME_S) -> None:
        self._count = count
        self._lifetime_s = lifetime_s
        self._namespaces: list[Namespace] = []

    def __enter__(self) -> list[Host]:
        try:
            switch = self._namespace()
            switch.ip("link", "add", "br0", "type", "bridge")
            switch.ip("link", "set", "br0", "up")
            return [self._host(switch, number) for number in range(1, self._count + 1)]
        except BaseException:
            self._remove()
            raise

    def __exit__(self, *_exception) -> None:
        self._remove()

    def _namespace(self) -> Namespace:
        self._namespaces.append(Namespace(self._lifetime_s))
        return self._namespaces[-1]

    def _host(self, switch: Namespace, number: int) -> Host:
        host = Host(self._namespace(), f"10.77.0.{number}", f"fd77::{number}")
        port = f"p{number}"
        wire = ["link", "add", "eth0", "type", "veth", "peer", "name", port]
        host.ip(*wire, "netns", switch.pid)
        switch.ip("link", "set", port, "master", "br0", "up")
        host.ip("link", "set", "lo", "up")
        host.ip("addr", "add", f"{host.ipv4}/24", "dev", "eth0")
        # nodad: the address is usable at once
        host.ip("-6", "addr", "add", f"{host.ipv6}/64", "dev", "eth0", "nodad")
        host.ip("link", "set", "eth0", "up")
        add_decoy(host)
        return host

    def _remove(self) -> None:
        for namespace in self._namespaces:
            namespace.remove()


def add_decoy(host: Host) -> None:
    """A bridge with a live port, so that it counts as running, and a busy address."""
    host.ip("link", "add", "docker0", "type", "bridge")
    host.ip("link", "add", "inside", "type", "veth", "peer", "name", "outside")
    host.ip("link", "set", "inside", "master", "docker0", "up")
    host.ip("link", "set", "outside", "up")
    host.ip("addr", "add", "172.17.0.1/16", "dev", "docker0")
    host.ip("link", "set", "docker0", "up")


def remote_shell_environment(hosts: list[Host]) -> dict[str, str]:
    """What REMOTE_SHELL needs to find the hosts."""
    return {"NETLAB_HOSTS": " ".join(f"{host.ipv4}={host.namespace.pid}" for host in hosts)}
