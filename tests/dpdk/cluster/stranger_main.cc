// An attacker on an Ethernet. It sends frames of one kind for some time, from addresses that it invents.
//   tributary_dpdk_stranger INTERFACE TARGET_IP TARGET_MAC PORT KIND SECONDS RATE [PEER_IP]
// Prints the number of frames that it has sent. RATE 0 means as fast as it can. PEER_IP is the host to which the target
// is supposed to have sent the packet that ICMP quotes. KIND cookie_open uses the kernel's sockets instead of raw
// frames, because sockets receive the cookies that are sent to them.
//   tributary_dpdk_stranger TARGET_IP DOOR_PORT GROUP LANE
// Asks the door for the port of the worker that serves a lane, and prints it. The program also replays and changes
// frames that it has overheard at this host's interfaces.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "tests/system/udp/hostile_traffic.h"
#include "transport/ethernet/bytes.h"
#include "transport/ethernet/control_writer.h"
#include "transport/ethernet/udp_template.h"

namespace {

using namespace tributary;
using namespace tributary::transport;
using namespace std::chrono_literals;

constexpr std::size_t kSeenMax = 200;
constexpr std::array<std::string_view, hostile::kKinds> kPackets{
    "garbage",    "wrong_checksum", "guessed_name", "unsealed", "foreign_group",
    "wrong_seal", "guessed_end",    "replay",       "changed",  ""};
constexpr std::size_t kIpAt = ethernet::kEthernetBytes;

class Frames {
 public:
  Frames(ethernet::UdpFlow flow, std::string_view kind, hostile::Stranger& stranger, const ethernet::IpAddress& peer)
      : flow_(flow), kind_(kind), stranger_(stranger), peer_(peer) {
    for (std::size_t i = 0; i < kPackets.size(); ++i) {
      if (kind == kPackets[i]) packet_ = static_cast<hostile::Kind>(i);
    }
  }

  hostile::Datagram next() {
    flow_.from[15] = static_cast<std::uint8_t>(100 + random_.below(100));
    flow_.from_mac.bytes = {2, 0, 0, 0, 1, flow_.from[15]};
    flow_.from_port = static_cast<std::uint16_t>(1024 + random_.below(60000));
    if (kind_ == "arp") return arp();
    if (kind_ == "echo") return echo();
    if (kind_ == "frag_needed" || kind_ == "unreachable") return quoting();
    hostile::Datagram frame = datagram(stranger_.make(packet_));
    std::byte* const ip = frame.data() + kIpAt;
    if (kind_ == "udp_checksum") frame[kIpAt + ethernet::kIpv4Bytes + 6] ^= std::byte{0x10};
    if (kind_ == "fragment") ethernet::store16(ip + 6, 0x2000);  // only the first fragment, never the rest
    if (kind_ == "options") ethernet::store8(ip, 0x46);
    if (kind_ == "fragment" || kind_ == "options") repair(ip);
    if (kind_ == "ip_checksum") ip[10] ^= std::byte{1};
    return frame;
  }

 private:
  hostile::Datagram datagram(const hostile::Datagram& body) const {
    const ethernet::UdpTemplate headers(flow_, {});
    hostile::Datagram frame(headers.bytes());
    headers.write(frame.data(), body.size(), ethernet::partial_sum(body));
    frame.insert(frame.end(), body.begin(), body.end());
    return frame;
  }
  static void repair(std::byte* ip) {
    ethernet::store16(ip + 10, 0);
    ethernet::store_checksum(ip + 10, ethernet::finish(ethernet::partial_sum({ip, ethernet::kIpv4Bytes})));
  }
  /// Makes a frame from a station that claims another address each time.
  hostile::Datagram arp() {
    hostile::Datagram frame(64);
    ethernet::IpAddress claimed = flow_.from;
    claimed[14] = static_cast<std::uint8_t>(random_.below(256));
    frame.resize(ethernet::write_arp(frame, 0, ethernet::ArpOperation::request, {flow_.from_mac, claimed},
                                     {{}, flow_.to}, ethernet::kBroadcastMac));
    return frame;
  }
  hostile::Datagram echo() {
    constexpr std::array<std::byte, 60> kRest{};
    hostile::Datagram frame(128);
    frame.resize(ethernet::write_icmp(frame, 0, {flow_.from_mac, flow_.from}, {flow_.to_mac, flow_.to}, {8},
                                      ethernet::kHopLimit, kRest));
    return frame;
  }

  /// Makes a router's or host's message that a packet did not arrive, although the target never sent this packet.
  hostile::Datagram quoting() {
    const ethernet::UdpFlow quoted{.from = flow_.to,
                                   .to = peer_,
                                   .from_port = flow_.to_port,
                                   .to_port = static_cast<std::uint16_t>(32768 + random_.below(28000))};
    const hostile::Datagram body = stranger_.make(hostile::Kind::guessed_name);
    const ethernet::UdpTemplate headers(quoted, {});
    std::vector<std::byte> packet(headers.bytes());
    headers.write(packet.data(), body.size(), ethernet::partial_sum(body));
    packet.insert(packet.end(), body.begin(),
                  body.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(body.size(), 64)));
    std::vector<std::byte> rest(4);
    if (kind_ == "frag_needed") ethernet::store16(rest.data() + 2, 576);
    rest.insert(rest.end(), packet.begin() + kIpAt, packet.end());
    hostile::Datagram frame(512);
    const ethernet::IcmpKind kind{3, static_cast<std::uint8_t>(kind_ == "frag_needed" ? 4 : 3)};
    frame.resize(ethernet::write_icmp(frame, 0, {flow_.from_mac, flow_.from}, {flow_.to_mac, flow_.to}, kind,
                                      ethernet::kHopLimit, rest));
    return frame;
  }

  ethernet::UdpFlow flow_;
  const std::string_view kind_;
  hostile::Stranger& stranger_;
  const ethernet::IpAddress peer_;
  hostile::Kind packet_ = hostile::Kind::guessed_name;
  Random random_{7};
};

/// Sends at a rate, for some seconds; 0 means as fast as `send` returns.
template <class Send>
std::uint64_t flood(double seconds, double rate, const Send& send) {
  constexpr std::uint64_t kAtOnce = 64;
  std::uint64_t sent = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (double age = 0; age < seconds;) {
    age = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (rate <= 0) {
      for (std::uint64_t i = 0; i < kAtOnce; ++i, ++sent) send();
      continue;
    }
    for (; static_cast<double>(sent) < age * rate; ++sent) send();
    std::this_thread::sleep_for(500us);
  }
  return sent;
}

sockaddr_in kernel_address(const char* ip, const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, ip, &address.sin_addr);
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  return address;
}

hostile::Datagram open_packet(const packet::Handshake& handshake) {
  packet::PacketHeader header;
  header.type = packet::PacketType::open;
  header.connection = handshake.connection;
  const auto payload = std::as_bytes(std::span(&handshake, 1));
  hostile::Datagram bytes(packet::kPacketHeaderBytes);
  packet::encode(header, std::span(bytes).first<packet::kPacketHeaderBytes>(), payload, {});
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

/// Returns the answer of this kind that came to the socket, if one came.
std::optional<packet::Handshake> answer_at(int socket, packet::PacketType type) {
  std::array<std::byte, 2048> bytes;
  const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got <= 0) return std::nullopt;
  const auto datagram = std::span(bytes).first(static_cast<std::size_t>(got));
  const auto header = packet::decode_packet(datagram);
  if (!header || header->type != type) return std::nullopt;
  const auto told = packet::decode_handshake(datagram.subspan(packet::kPacketHeaderBytes));
  return told ? std::optional(*told) : std::nullopt;
}

/// Opens real connections for groups that do not exist: each costs the listener memory.
int open_with_cookies(char** a) {
  const hostile::Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = kernel_address(a[2], a[4]);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return std::puts("no socket"), 1;
  const auto send = [&socket](const packet::Handshake& handshake) {
    const hostile::Datagram bytes = open_packet(handshake);
    static_cast<void>(::send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT));
  };
  Random random(9);
  std::uint64_t shown = 0;
  static_cast<void>(flood(std::atof(a[6]), std::atof(a[7]), [&] {
    packet::Handshake handshake;
    handshake.connection = random.next();
    handshake.group = ~handshake.connection;
    handshake.credit = 65536;
    handshake.datagram_bytes = 1472;
    send(handshake);
    while (const auto challenge = answer_at(socket.get(), packet::PacketType::challenge)) {
      packet::Handshake again = *challenge;
      again.group = ~again.connection;
      again.credit = 65536;
      again.datagram_bytes = 1472;
      send(again);
      ++shown;
    }
  }));
  return std::printf("%llu\n", static_cast<unsigned long long>(shown)), 0;
}

int ask_door(char** a) {
  const hostile::Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = kernel_address(a[1], a[2]);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return 1;
  packet::Handshake handshake;
  handshake.connection = 1234567;
  handshake.group = std::strtoull(a[3], nullptr, 10);
  handshake.lane = static_cast<std::uint32_t>(std::atoi(a[4]));
  for (int attempt = 0; attempt < 20; ++attempt) {
    const hostile::Datagram bytes = open_packet(handshake);
    static_cast<void>(::send(socket.get(), bytes.data(), bytes.size(), 0));
    pollfd waited{.fd = socket.get(), .events = POLLIN, .revents = 0};
    static_cast<void>(::poll(&waited, 1, 200));
    if (const auto told = answer_at(socket.get(), packet::PacketType::redirect)) {
      return std::printf("%u\n", unsigned{told->port}), 0;
    }
  }
  return 1;
}

int run(char** a, const char* peer) {
  const hostile::Socket socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_ifindex = static_cast<int>(::if_nametoindex(a[1]));
  if (!socket.good() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    return std::puts("no raw socket"), 1;
  }
  ethernet::UdpFlow flow{.to = ethernet::parse_ip(a[2]).value(),
                         .to_port = static_cast<std::uint16_t>(std::atoi(a[4]))};
  flow.from = flow.to;
  std::array<unsigned, 6> mac{};
  std::sscanf(a[3], "%x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]);
  for (std::size_t i = 0; i < mac.size(); ++i) flow.to_mac.bytes[i] = static_cast<std::uint8_t>(mac[i]);
  const std::string_view kind = a[5];
  std::vector<hostile::Datagram> seen;
  if (kind == "replay" || kind == "changed" || kind == "unsealed")
    seen = hostile::overheard(flow.to_port, kSeenMax, 500);
  if (seen.empty()) seen.resize(1, hostile::Datagram(64));
  hostile::Stranger stranger(flow.to_port, std::move(seen), 1);
  Frames frames(flow, kind, stranger, ethernet::parse_ip(peer).value());
  const std::uint64_t sent = flood(std::atof(a[6]), std::atof(a[7]), [&] {
    const hostile::Datagram frame = frames.next();
    static_cast<void>(::send(socket.get(), frame.data(), frame.size(), 0));
  });
  std::printf("%llu\n", static_cast<unsigned long long>(sent));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 5) return ask_door(arguments);
  if (count != 8 && count != 9) return 64;
  if (std::string_view(arguments[5]) == "cookie_open") return open_with_cookies(arguments);
  return run(arguments, count == 9 ? arguments[8] : "10.6.0.10");
}
