#include "tests/system/udp/hostile_traffic.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "transport/packet/crc32c.h"

namespace tributary::hostile {

using namespace transport::packet;

namespace {

constexpr std::size_t kSockets = 16;

sockaddr_in loopback(std::uint32_t last, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x7F000000U + last);
  address.sin_port = htons(port);
  return address;
}

Datagram packet_of(const PacketHeader& header, std::span<const std::byte> payload) {
  Datagram bytes(kPacketHeaderBytes);
  encode(header, std::span(bytes).first<kPacketHeaderBytes>(), payload, {});
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

PacketHeader header_in(const Datagram& bytes) {
  PacketHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  return header;
}

void repair(Datagram& bytes) {
  PacketHeader header = header_in(bytes);
  if ((header.flags & packet_flags::kSealed) != 0) return;
  encode(header, std::span(bytes).first<kPacketHeaderBytes>(), std::span(bytes).subspan(kPacketHeaderBytes), {});
}

}  // namespace

std::string_view to_string(Kind kind) noexcept {
  constexpr std::string_view names[] = {"garbage",    "wrong checksum", "guessed name", "unsealed", "foreign group",
                                        "wrong seal", "guessed end",    "replay",       "changed",  "fragment"};
  return names[static_cast<std::size_t>(kind)];
}

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Stranger::Stranger(std::uint16_t port, std::vector<Datagram> seen, std::uint64_t seed)
    : port_(port),
      seen_(std::move(seen)),
      random_(seed),
      raw_(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW)) {
  for (std::uint32_t i = 0; i < kSockets; ++i) {
    auto socket = std::make_unique<Socket>(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_in from = loopback(100 + i, 0);
    if (::bind(socket->get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0) {
      sockets_.push_back(std::move(socket));
    }
  }
}

bool Stranger::can(Kind kind) const noexcept {
  const bool needs_seen = kind == Kind::replay || kind == Kind::changed || kind == Kind::unsealed;
  if (kind == Kind::fragment) return raw_.good();
  return !sockets_.empty() && (!needs_seen || !seen_.empty());
}

Datagram Stranger::make(Kind kind) {
  const auto random_payload = [this](std::size_t bytes_max) {
    Datagram payload(random_.below(bytes_max));
    for (std::byte& byte : payload) byte = static_cast<std::byte>(random_.next());
    return payload;
  };
  PacketHeader header;
  header.connection = random_.next();
  header.number = random_.below(1'000'000);
  Handshake handshake;
  handshake.connection = header.connection;
  handshake.group = random_.next();
  handshake.cookie = random_.below(2) * random_.next();
  const auto told = std::as_bytes(std::span(&handshake, 1));
  switch (kind) {
    case Kind::garbage:
      return random_payload(1400);
    case Kind::wrong_checksum: {
      Datagram bytes = packet_of(header, random_payload(1000));
      bytes[16 + random_.below(bytes.size() - 16)] ^= std::byte{1};
      return bytes;
    }
    case Kind::guessed_name:
      return packet_of(header, random_payload(1000));
    case Kind::unsealed: {
      header.connection = header_in(seen_[random_.below(seen_.size())]).connection;
      header.flags = packet_flags::kFin;
      header.credit = UINT32_MAX;
      return packet_of(header, random_payload(1000));
    }
    case Kind::foreign_group:
      header.type = PacketType::open;
      return packet_of(header, told);
    case Kind::wrong_seal: {
      header.type = PacketType::open;
      header.flags = packet_flags::kSealed;
      header.payload_bytes = kHandshakeBytes;
      handshake.security = 1 + static_cast<std::uint32_t>(random_.below(2));
      Datagram bytes(kPacketHeaderBytes + kSealTagBytes + kHandshakeBytes);
      std::memcpy(bytes.data(), &header, sizeof header);
      std::memcpy(bytes.data() + kPacketHeaderBytes + kSealTagBytes, &handshake, sizeof handshake);
      header.checksum = sealed_checksum(bytes);
      std::memcpy(bytes.data(), &header, sizeof header);
      return bytes;
    }
    case Kind::guessed_end:
      header.type = random_.below(2) == 0 ? PacketType::close : PacketType::reset;
      return packet_of(header, {});
    case Kind::replay:
      return seen_[random_.below(seen_.size())];
    case Kind::changed: {
      Datagram bytes = seen_[random_.below(seen_.size())];
      bytes[16 + random_.below(bytes.size() - 16)] ^= std::byte{4};
      repair(bytes);
      return bytes;
    }
    case Kind::fragment:
      break;
  }
  return {};
}

void Stranger::send(Kind kind) {
  if (kind == Kind::fragment) return send_fragment();
  const Datagram bytes = make(kind);
  const sockaddr_in to = loopback(1, port_);
  const Socket& socket = *sockets_[random_.below(sockets_.size())];
  static_cast<void>(
      ::sendto(socket.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to));
  std::array<std::byte, 2048> answer;  // the content does not matter, but the socket must not fill up
  static_cast<void>(::recv(socket.get(), answer.data(), answer.size(), 0));
}

void Stranger::send_fragment() {
  std::array<std::byte, sizeof(iphdr) + 512> frame{};
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.ttl = 64;
  ip.protocol = IPPROTO_UDP;
  ip.id = htons(static_cast<std::uint16_t>(random_.next()));
  ip.frag_off = htons(0x2000);  // the flag for more fragments
  ip.saddr = htonl(0x7F000070);
  ip.daddr = htonl(INADDR_LOOPBACK);
  udphdr udp{};
  udp.source = htons(40000);
  udp.dest = htons(port_);
  udp.len = htons(1200);
  std::memcpy(frame.data(), &ip, sizeof ip);
  std::memcpy(frame.data() + sizeof ip, &udp, sizeof udp);
  const sockaddr_in to = loopback(1, port_);
  static_cast<void>(
      ::sendto(raw_.get(), frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

std::uint16_t port_behind(std::uint16_t door, std::uint64_t group, std::uint32_t lane) {
  const Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = loopback(1, door);
  PacketHeader header;
  header.type = PacketType::open;
  header.connection = 1234567;
  Handshake handshake;
  handshake.connection = header.connection;
  handshake.group = group;
  handshake.lane = lane;
  const Datagram bytes = packet_of(header, std::as_bytes(std::span(&handshake, 1)));
  for (int attempt = 0; attempt < 20; ++attempt) {
    static_cast<void>(
        ::sendto(socket.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to));
    pollfd waited{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waited, 1, 200) <= 0) continue;
    std::array<std::byte, 2048> answer;
    const ssize_t got = ::recv(socket.get(), answer.data(), answer.size(), 0);
    if (got <= 0) continue;
    const auto datagram = std::span(answer).first(static_cast<std::size_t>(got));
    const auto told = decode_packet(datagram);
    if (!told || told->type != PacketType::redirect) continue;
    if (const auto redirect = decode_handshake(datagram.subspan(kPacketHeaderBytes))) return redirect->port;
  }
  return 0;
}

std::vector<Datagram> overheard(std::uint16_t port, std::size_t datagrams_max, int milliseconds) {
  std::vector<Datagram> seen;
  const Socket socket(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP)));
  if (!socket.good()) return seen;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  std::vector<std::byte> bytes(65536);
  while (seen.size() < datagrams_max && std::chrono::steady_clock::now() < end) {
    pollfd waited{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waited, 1, 10) <= 0) continue;
    const ssize_t got = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (got < static_cast<ssize_t>(sizeof(iphdr) + sizeof(udphdr) + kPacketHeaderBytes)) continue;
    iphdr ip{};
    udphdr udp{};
    std::memcpy(&ip, bytes.data(), sizeof ip);
    const std::size_t head = std::size_t{ip.ihl} * 4;
    std::memcpy(&udp, bytes.data() + head, sizeof udp);
    if (ip.protocol != IPPROTO_UDP || ntohs(udp.dest) != port) continue;
    Datagram datagram(bytes.begin() + static_cast<std::ptrdiff_t>(head + sizeof udp), bytes.begin() + got);
    // Neighbouring packets travel as one datagram over the loopback device: cut out the first packet.
    const PacketHeader header = header_in(datagram);
    if (header.magic != kPacketMagic || header.type != PacketType::data) continue;
    const bool sealed = (header.flags & packet_flags::kSealed) != 0;
    const std::size_t whole = kPacketHeaderBytes + (sealed ? kSealTagBytes : 0) + header.payload_bytes;
    if (whole > datagram.size()) continue;
    datagram.resize(whole);
    seen.push_back(std::move(datagram));
  }
  return seen;
}

std::string page(std::uint16_t port, const std::string& path) {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = loopback(1, port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return {};
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
  std::string answer;
  std::array<char, 4096> piece;
  for (ssize_t got = 0; (got = ::recv(socket.get(), piece.data(), piece.size(), 0)) > 0;) {
    answer.append(piece.data(), static_cast<std::size_t>(got));
  }
  return answer;
}

}  // namespace tributary::hostile
