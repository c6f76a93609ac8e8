"""Reads the packets that arrive at this machine's interfaces, and looks in them for what sealed connections hide."""

import re
import socket
import threading
from collections.abc import Callable

POLL_SECONDS = 0.2  # how often to see whether reading has ended; no result depends on it
FRAME = b"TRB1"
# Four bytes stand somewhere in every 4 GiB of encrypted bytes by chance, so look for a token's version and lane as well.
TOKEN = re.compile(rb"TRKT[\x01-\x1f][\x00-\x1f]")
PROBE_BYTES = 48


class PacketReader:
    """Calls `take` with each IPv4 packet, once: the frame, where its IP payload begins, and the interface's name."""

    def __init__(self, take: Callable[[bytes, int, str], None], interface: str = "") -> None:
        """`interface`: read only this one; empty: all."""
        self.take = take
        self.going = True
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 512 << 20)  # SO_RCVBUFFORCE: the system drops no packet
        if interface:
            self.socket.bind((interface, 0))
        self.socket.settimeout(POLL_SECONDS)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while self.going:
            try:
                packet, address = self.socket.recvfrom(1 << 17)
            except TimeoutError:
                continue
            if address[2] != socket.PACKET_OUTGOING:  # an interface shows what it sends, too
                self.take(packet, 14 + (packet[14] & 15) * 4, address[0])

    def end(self) -> None:
        """May be called again."""
        self.going = False
        self.thread.join()
        self.socket.close()


class PayloadReader(PacketReader):
    """Keeps the payloads of all TCP and UDP packets, except those of HTTP."""

    def __init__(self, interface: str = "") -> None:
        self.tcp: list[bytes] = []
        self.udp: list[bytes] = []
        super().__init__(self.keep, interface)

    def keep(self, packet: bytes, head: int, _: str) -> None:
        if packet[23] == socket.IPPROTO_TCP and b"HTTP/1.1" not in packet:
            self.tcp.append(packet[head + (packet[head + 12] >> 4) * 4:])
        elif packet[23] == socket.IPPROTO_UDP:
            self.udp.append(packet[head + 8:])

    def payloads(self) -> bytes:
        """Ends the reading."""
        self.end()
        return b"|".join(self.tcp + self.udp)

    def kinds(self) -> dict[str, bool]:
        """Ends the reading, and returns the kinds of data that the payloads show. The vectors repeat themselves."""
        payloads = self.payloads()
        most = max(self.tcp, self.udp, key=lambda some: sum(map(len, some)))
        longest = max(most[len(most) // 2:], key=len)  # the first packets may be long, too
        probe = longest[len(longest) // 2:][:PROBE_BYTES]
        return {"frames": payloads.count(FRAME) > 20, "tokens": TOKEN.search(payloads) is not None, "gradients": payloads.count(probe) > 10}
