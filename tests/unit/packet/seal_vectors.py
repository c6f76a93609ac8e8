#!/usr/bin/env python3
"""Another implementation of "Sealed packets" in docs/protocol.md. It prints the values of the page's example, which
seal_test.cc expects. Needs python3-cryptography; no test runs it."""
import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SECRET = bytes(range(1, 17))
CLIENT, LISTENER = 0x1122334455667788, 0x99AABBCCDDEEFF00
CLIENT_RANDOM, LISTENER_RANDOM = bytes(range(0x40, 0x50)), bytes(range(0x80, 0x90))


def mac(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def expand(key, info):
    return mac(key, info + b"\1")


def derive(label, level, from_client, phase):
    master = mac(CLIENT_RANDOM + LISTENER_RANDOM, SECRET)
    return expand(master, label + b"\0" + struct.pack("<QQQBB", CLIENT, LISTENER, phase, from_client, level))


def header(number, payload_bytes):
    return struct.pack("<HBBHHQQQIIIIIIII", 0x5054, 1, 6, 12, payload_bytes, LISTENER, number, 0, 0, 0, 65536, 0, 0, 0,
                       0, 0)


def sealed(level, number, payload):
    material = derive(b"tributary data", level, 1, number >> 22)
    key, iv = material[:16], material[16:28]
    nonce = iv[:4] + bytes(a ^ b for a, b in zip(iv[4:], struct.pack("<Q", number)))
    head = header(number, len(payload))
    if level == 1:
        return AESGCM(key).encrypt(nonce, b"", head + payload) + payload
    out = AESGCM(key).encrypt(nonce, payload, head)
    return out[-16:] + out[:-16]


print("authenticate", sealed(1, 5, bytes(range(32))).hex())
print("encrypt     ", sealed(2, 5, bytes(range(32))).hex())
print("next phase  ", sealed(2, (1 << 22) + 5, bytes(range(32))).hex())
print("open        ", mac(expand(SECRET, b"tributary open"), header(0, 0))[:16].hex())
print("control     ", mac(derive(b"tributary control", 2, 1, 0), header(0, 0))[:16].hex())
