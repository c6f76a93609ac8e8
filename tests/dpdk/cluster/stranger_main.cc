// Somebody on an Ethernet who means no good: sends frames of one kind, from addresses that he makes up, for so long.
//   tributary_dpdk_stranger INTERFACE TARGET_IP TARGET_MAC PORT KIND SECONDS RATE
// Prints how many were sent. What is replayed or changed he has overheard at this host's interfaces before.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "ethernet/bytes.h"
#include "ethernet/control_writer.h"
#include "ethernet/udp_template.h"
#include "tests/system/udp/hostile_traffic.h"

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
  Frames(ethernet::UdpFlow flow, std::string_view kind, hostile::Stranger& stranger)
      : flow_(flow), kind_(kind), stranger_(stranger) {
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
    hostile::Datagram frame = datagram(stranger_.make(packet_));
    std::byte* const ip = frame.data() + kIpAt;
    if (kind_ == "udp_checksum") frame[kIpAt + ethernet::kIpv4Bytes + 6] ^= std::byte{0x10};
    if (kind_ == "fragment") ethernet::store16(ip + 6, 0x2000);  // the first one, and never the rest
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
  /// From a station that claims another address each time.
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

  ethernet::UdpFlow flow_;
  const std::string_view kind_;
  hostile::Stranger& stranger_;
  hostile::Kind packet_ = hostile::Kind::guessed_name;
  Random random_{7};
};

int run(char** a) {
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
  Frames frames(flow, kind, stranger);
  const double seconds = std::atof(a[6]);
  const double rate = std::atof(a[7]);
  std::uint64_t sent = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (double age = 0; age < seconds;) {
    age = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    for (; static_cast<double>(sent) < age * rate; ++sent) {
      const hostile::Datagram frame = frames.next();
      static_cast<void>(::send(socket.get(), frame.data(), frame.size(), 0));
    }
    std::this_thread::sleep_for(500us);
  }
  std::printf("%llu\n", static_cast<unsigned long long>(sent));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  return count == 8 ? run(arguments) : 64;
}
