"""Reads the packets that arrive at this machine's interfaces."""

import socket
import threading
from collections.abc import Callable

POLL_SECONDS = 0.2  # how often to see whether reading has ended; no result depends on it


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
        self.going = False
        self.thread.join()
        self.socket.close()
