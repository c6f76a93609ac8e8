#include "transport/ethernet/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ethernet/frames.h"
#include "transport/ethernet/bytes.h"
#include "transport/ethernet/icmp.h"
#include "transport/ethernet/quotation.h"

namespace tributary::transport::ethernet::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

HostSettings settings() {
  return {.mac = kOurMac,
          .addresses = {prefix("10.0.0.1/24"), prefix("fd00::1/64")},
          .gateways = {ip("10.0.0.254"), ip("fd00::fe")},
          .answers_per_second = 10,
          .echoes_per_second = 5};
}

class HostTest : public ::testing::Test {
 protected:
  /// Parses a frame of the host and checks all its checksums; returns nothing if the host gives no answer.
  std::optional<Frame> ask(const FrameBytes& bytes) {
    answer.assign(2048, std::byte{0xEE});
    answer.resize(host.answer(parse_frame(bytes), bytes, now, answer));
    if (answer.empty()) return std::nullopt;
    Frame parsed = parse_frame(answer);
    EXPECT_NE(parsed.kind, FrameKind::dropped) << to_string(parsed.drop);
    return parsed;
  }
  std::span<const std::byte> body(const Frame& frame) {
    return std::span(answer).subspan(frame.body_offset, frame.body_bytes);
  }
  /// Returns the part of a neighbour solicitation or advertisement that follows its checksum.
  static std::string neighbour_rest(std::uint32_t flags, const IpAddress& target, NeighbourOption option,
                                    const MacAddress& mac) {
    std::string rest(28, '\0');
    auto* const at = reinterpret_cast<std::byte*>(rest.data());
    store32(at, flags);
    store_array(at + 4, target);
    store8(at + 20, static_cast<std::uint8_t>(option));
    store8(at + 21, 1);
    store_array(at + 22, mac.bytes);
    return rest;
  }
  FrameBytes solicitation(const char* target, std::uint8_t hops = kNeighbourHopLimit) {
    return icmp_frame(their6, {multicast_mac_of(solicited_node_of(ip(target))), solicited_node_of(ip(target))},
                      {kNeighbourSolicitation},
                      neighbour_rest(0, ip(target), NeighbourOption::source_address, kTheirMac), hops);
  }
  bool knows(const IpAddress& address) {
    MacAddress mac;
    return host.neighbours().find(address, mac);
  }

  TimePoint now{1h};
  Host host{settings()};
  FrameBytes answer;
  const Station us4{kOurMac, ip("10.0.0.1")}, their4{kTheirMac, ip("10.0.0.2")};
  const Station us6{kOurMac, ip("fd00::1")}, their6{kTheirMac, ip("fd00::2")};
};

TEST_F(HostTest, KnowsItsAddressesItsRoutesAndTheSourceOfEachDatagram) {
  EXPECT_TRUE(host.has(ip("10.0.0.1")));
  EXPECT_TRUE(host.has(link_local_of(kOurMac)));
  EXPECT_FALSE(host.has(ip("10.0.0.2")));
  EXPECT_EQ(host.next_hop(ip("10.0.0.77")), ip("10.0.0.77"));
  EXPECT_EQ(host.next_hop(ip("192.168.1.1")), ip("10.0.0.254"));
  EXPECT_EQ(host.next_hop(ip("fd00::77")), ip("fd00::77"));
  EXPECT_EQ(host.next_hop(ip("fd01::1")), ip("fd00::fe"));
  EXPECT_EQ(host.next_hop(ip("fe80::5")), ip("fe80::5"));
  EXPECT_EQ(host.next_hop(ip("ff02::1")), std::nullopt);
  EXPECT_EQ(host.source_for(ip("192.168.1.1")), ip("10.0.0.1"));
  EXPECT_EQ(host.source_for(ip("fd01::1")), ip("fd00::1"));
  EXPECT_EQ(host.source_for(ip("fe80::5")), link_local_of(kOurMac));
  Host alone{{.mac = kOurMac, .addresses = {prefix("10.0.0.1/24")}}};
  EXPECT_EQ(alone.next_hop(ip("192.168.1.1")), std::nullopt);
  EXPECT_EQ(alone.source_for(ip("fd00::2")), std::nullopt);
}

TEST_F(HostTest, SaysWhichSettingIsWrong) {
  const auto why = [](std::vector<Prefix> addresses, std::vector<IpAddress> gateways) {
    return Host::check({.addresses = std::move(addresses), .gateways = std::move(gateways)}).error().message;
  };
  EXPECT_TRUE(Host::check(settings()));
  EXPECT_THAT(why({}, {}), HasSubstr("no address"));
  EXPECT_THAT(why({prefix("224.0.0.1/24")}, {}), HasSubstr("can be no host's"));
  EXPECT_THAT(why({prefix("10.0.0.1/24"), prefix("10.0.0.2/24")}, {}), HasSubstr("second address of its family"));
  EXPECT_THAT(why({prefix("10.0.0.1/24")}, {ip("10.0.1.1")}), HasSubstr("outside of the network"));
  EXPECT_THAT(why({prefix("10.0.0.1/24")}, {ip("10.0.0.1")}), HasSubstr("both an own address"));
  EXPECT_THAT(why({prefix("10.0.0.1/24")}, {ip("fe80::1")}), HasSubstr("outside of the network"));
}

TEST_F(HostTest, AnswersArpRequestsForItAndRemembersTheSender) {
  ASSERT_TRUE(ask(arp_frame(ArpOperation::request, their4, {{}, us4.ip})));
  const Frame parsed = parse_frame(answer);
  ASSERT_EQ(parsed.kind, FrameKind::arp);
  EXPECT_EQ(parsed.to_mac, kTheirMac);
  EXPECT_EQ(parsed.from_mac, kOurMac);
  const std::byte* const arp = body(parsed).data();
  EXPECT_EQ(load16(arp + 6), 2);
  EXPECT_EQ(load_array<6>(arp + 8), kOurMac.bytes);
  EXPECT_EQ(load_array<4>(arp + 14), ipv4_of(us4.ip));
  EXPECT_EQ(load_array<6>(arp + 18), kTheirMac.bytes);
  EXPECT_EQ(load_array<4>(arp + 24), ipv4_of(their4.ip));
  EXPECT_TRUE(knows(their4.ip));
}

TEST_F(HostTest, IgnoresArpForOtherHosts) {
  EXPECT_FALSE(ask(arp_frame(ArpOperation::request, their4, {{}, ip("10.0.0.3")})));
  EXPECT_FALSE(knows(their4.ip)) << "a host that asks for others is not remembered as a neighbour";
  EXPECT_FALSE(ask(arp_frame(ArpOperation::request, {kTheirMac, ip("192.168.1.2")}, {{}, us4.ip})));
  EXPECT_FALSE(ask(arp_frame(static_cast<ArpOperation>(3), their4, {{}, us4.ip})));
}

TEST_F(HostTest, AnswersAnAddressProbeWithoutRememberingAnybody) {
  EXPECT_TRUE(ask(arp_frame(ArpOperation::request, {kTheirMac, ip("0.0.0.0")}, {{}, us4.ip})));
  EXPECT_EQ(host.counts().neighbours.entries, 0U);
}

TEST_F(HostTest, CountsAStationThatClaimsItsAddress) {
  EXPECT_FALSE(ask(arp_frame(ArpOperation::request, {kTheirMac, us4.ip}, {{}, us4.ip})));
  EXPECT_FALSE(ask(icmp_frame(
      {kTheirMac, us6.ip}, {multicast_mac_of(all_nodes()), all_nodes()}, {kNeighbourAdvertisement},
      neighbour_rest(kAdvertisementOverride, us6.ip, NeighbourOption::target_address, kTheirMac), kNeighbourHopLimit)));
  EXPECT_EQ(host.counts().address_conflicts, 2U);
}

TEST_F(HostTest, ResolvesByArp) {
  host.neighbours().want(their4.ip, now);
  std::array<NeighbourProbe, 4> probes;
  ASSERT_EQ(host.neighbours().due(now, probes), 1U);
  FrameBytes question(128);
  question.resize(host.write_probe(probes[0], question));
  const Frame asked = parse_frame(question);
  ASSERT_EQ(asked.kind, FrameKind::arp);
  EXPECT_EQ(asked.to_mac, kBroadcastMac);
  EXPECT_FALSE(ask(arp_frame(ArpOperation::reply, their4, us4, kOurMac)));
  EXPECT_TRUE(knows(their4.ip));
}

TEST_F(HostTest, ResolvesByNeighbourDiscovery) {
  host.neighbours().want(their6.ip, now);
  std::array<NeighbourProbe, 4> probes;
  ASSERT_EQ(host.neighbours().due(now, probes), 1U);
  FrameBytes question(128);
  question.resize(host.write_probe(probes[0], question));
  const Frame asked = parse_frame(question);
  ASSERT_EQ(asked.kind, FrameKind::icmp6);
  EXPECT_EQ(asked.hop_limit, 255);
  EXPECT_EQ(asked.to, solicited_node_of(their6.ip));
  EXPECT_EQ(asked.to_mac, multicast_mac_of(asked.to));
  const std::uint32_t flags = kAdvertisementSolicited | kAdvertisementOverride;
  const auto rest = neighbour_rest(flags, their6.ip, NeighbourOption::target_address, kTheirMac);
  EXPECT_FALSE(ask(icmp_frame(their6, us6, {kNeighbourAdvertisement}, rest, 254)));
  EXPECT_FALSE(knows(their6.ip)) << "a packet that a router has forwarded is not from a neighbour";
  EXPECT_FALSE(ask(icmp_frame(their6, us6, {kNeighbourAdvertisement}, rest, 255)));
  EXPECT_TRUE(knows(their6.ip));
}

TEST_F(HostTest, AnswersSolicitationsAndRemembersTheSender) {
  const auto parsed = ask(solicitation("fd00::1"));
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->kind, FrameKind::icmp6);
  EXPECT_EQ(parsed->to, their6.ip);
  EXPECT_EQ(parsed->to_mac, kTheirMac);
  EXPECT_EQ(parsed->hop_limit, 255);
  const std::byte* const message = body(*parsed).data();
  EXPECT_EQ(load8(message), kNeighbourAdvertisement);
  EXPECT_EQ(load32(message + 4), kAdvertisementSolicited | kAdvertisementOverride);
  EXPECT_EQ(load_array<16>(message + 8), us6.ip);
  EXPECT_EQ(load_array<6>(message + 26), kOurMac.bytes);
  EXPECT_TRUE(knows(their6.ip));
  EXPECT_TRUE(ask(solicitation(to_string(link_local_of(kOurMac)).c_str())));
  EXPECT_FALSE(ask(solicitation("fd00::3")));
  EXPECT_FALSE(ask(solicitation("fd00::1", 254)));
}

TEST_F(HostTest, TellsAllHostsIfOneProbesForItsAddress) {
  const IpAddress group = solicited_node_of(us6.ip);
  std::string rest(20, '\0');
  store_array(reinterpret_cast<std::byte*>(rest.data()) + 4, us6.ip);
  const auto parsed =
      ask(icmp_frame({kTheirMac, {}}, {multicast_mac_of(group), group}, {kNeighbourSolicitation}, rest, 255));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->to, all_nodes());
  EXPECT_EQ(load32(body(*parsed).data() + 4), kAdvertisementOverride)
      << "the flag of solicited advertisements is not set";
}

TEST_F(HostTest, RefusesSolicitationsWhoseOptionsAreWrong) {
  auto rest = neighbour_rest(0, us6.ip, NeighbourOption::source_address, kTheirMac);
  rest[21] = 0;  // a parser that skips an option of length 0 would never end
  const IpAddress group = solicited_node_of(us6.ip);
  const Station to{multicast_mac_of(group), group};
  EXPECT_FALSE(ask(icmp_frame(their6, to, {kNeighbourSolicitation}, rest, 255)));
  rest[21] = 2;  // the option is longer than the message
  EXPECT_FALSE(ask(icmp_frame(their6, to, {kNeighbourSolicitation}, rest, 255)));
  EXPECT_EQ(host.counts().neighbours.entries, 0U);
}

TEST_F(HostTest, AddressesOfTheOtherFamilyInMessagesOfIpv6BelongToNoHost) {
  const IpAddress group = solicited_node_of(us6.ip);
  const auto about_us = neighbour_rest(0, us4.ip, NeighbourOption::source_address, kTheirMac);
  EXPECT_FALSE(ask(icmp_frame(their6, {multicast_mac_of(group), group}, {kNeighbourSolicitation}, about_us, 255)));
  host.neighbours().want(their4.ip, now);
  const auto about_them = neighbour_rest(kAdvertisementSolicited | kAdvertisementOverride, their4.ip,
                                         NeighbourOption::target_address, kTheirMac);
  EXPECT_FALSE(ask(icmp_frame(their6, us6, {kNeighbourAdvertisement}, about_them, 255)));
  EXPECT_FALSE(knows(their4.ip));
}

TEST_F(HostTest, AnswersPingsOfBothFamiliesUpToItsRate) {
  for (const auto& [from, to] : {std::pair{their4, us4}, std::pair{their6, us6}}) {
    const bool four = is_ipv4(to.ip);
    const auto parsed = ask(icmp_frame(from, to, {four ? kIcmpEchoRequest : kIcmp6EchoRequest}, "....payload"));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->to, from.ip);
    EXPECT_EQ(parsed->to_mac, from.mac);
    EXPECT_EQ(load8(body(*parsed).data()), four ? kIcmpEchoReply : kIcmp6EchoReply);
    const auto rest = body(*parsed).subspan(4);
    EXPECT_EQ(FrameBytes(rest.begin(), rest.end()), bytes_of("....payload"));
  }
  const FrameBytes ping = icmp_frame(their4, us4, {kIcmpEchoRequest}, "....");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask(ping));
  EXPECT_FALSE(ask(ping)) << "the host answers five questions a second";
  now += 1s;
  EXPECT_TRUE(ask(ping));
  EXPECT_EQ(host.counts().answers_limited, 1U);
}

TEST_F(HostTest, DoesNotAnswerPingsToAll) {
  EXPECT_FALSE(ask(icmp_frame(their4, {kBroadcastMac, ip("255.255.255.255")}, {kIcmpEchoRequest}, "....")));
  EXPECT_FALSE(ask(icmp_frame(their4, {kBroadcastMac, ip("10.0.0.255")}, {kIcmpEchoRequest}, "....")));
  EXPECT_FALSE(ask(icmp_frame(their6, {multicast_mac_of(all_nodes()), all_nodes()}, {kIcmp6EchoRequest}, "....")));
}

TEST_F(HostTest, WritesNothingWhereThereIsNoRoom) {
  const FrameBytes ping = icmp_frame(their4, us4, {kIcmpEchoRequest}, "....payload");
  std::array<std::byte, 40> small;
  EXPECT_EQ(host.answer(parse_frame(ping), ping, now, small), 0U);
}

TEST_F(HostTest, IgnoresAReportOfAPathThatNoPortHasVerified) {
  const auto quote = [](const char* from, const char* to) {
    const FrameBytes frame = udp_frame(from, to, "payload");
    return std::string(reinterpret_cast<const char*>(frame.data()) + kEthernetBytes, frame.size() - kEthernetBytes);
  };
  const Station router{{{2, 0, 0, 0, 0, 0xFE}}, ip("10.0.0.254")};
  EXPECT_FALSE(ask(icmp_frame(router, us4, {kIcmpUnreachable, kIcmpFragmentationNeeded},
                              std::string("\0\0\x05\x14", 4) + quote("10.0.0.1", "192.168.1.1"))));
  EXPECT_FALSE(ask(icmp_frame({router.mac, ip("fd00::fe")}, us6, {kIcmp6TooBig},
                              std::string("\0\0\x05\x78", 4) + quote("fd00::1", "fd01::1"))));
  EXPECT_EQ(host.path_mtu(ip("192.168.1.1"), now), 1500U) << "the host does not know what was sent";
  EXPECT_EQ(host.path_mtu(ip("fd01::1"), now), 1500U);
  EXPECT_EQ(host.counts().control_ignored, 2U);
}

TEST_F(HostTest, TakesReportsOfPathsThatItsPortsHaveVerified) {
  EXPECT_TRUE(host.believe_path_mtu(ip("192.168.1.1"), 1300, now));
  EXPECT_TRUE(host.believe_path_mtu(ip("fd01::1"), 1400, now));
  EXPECT_EQ(host.path_mtu(ip("192.168.1.1"), now), 1300U);
  EXPECT_EQ(host.path_mtu(ip("fd01::1"), now), 1400U);
  EXPECT_FALSE(host.believe_path_mtu(ip("192.168.1.2"), 576, now)) << "the MTU is less than the protocol needs";
  EXPECT_FALSE(host.believe_path_mtu(ip("10.0.0.2"), 1300, now)) << "the neighbour is on the link";
  EXPECT_EQ(host.path_mtu(ip("192.168.1.2"), now), 1500U);
  EXPECT_EQ(host.path_mtu(ip("10.0.0.2"), now), 1500U);
  EXPECT_EQ(host.counts().path_mtu_told, 2U);
}

TEST_F(HostTest, ReportsUnusedPortsAndReadsSuchReports) {
  for (const auto& [from, to] : {std::pair{"10.0.0.2", "10.0.0.1"}, std::pair{"fd00::2", "fd00::1"}}) {
    const FrameBytes lost = udp_frame(from, to, "payload");
    FrameBytes word(2048);
    word.resize(host.refuse(parse_frame(lost), lost, now, word));
    const Frame parsed = parse_frame(word);
    EXPECT_EQ(parsed.to, ip(from));
    const auto quotation = parse_quotation(parsed, word);
    ASSERT_TRUE(quotation);
    EXPECT_TRUE(quotation->port_unreachable);
    EXPECT_EQ(quotation->from, ip(from));
    EXPECT_EQ(quotation->to, ip(to));
    EXPECT_EQ(quotation->from_port, 4000);
    EXPECT_EQ(quotation->to_port, 7471);
    const auto quoted = std::span(word).subspan(quotation->payload_offset, quotation->payload_bytes);
    EXPECT_EQ(FrameBytes(quoted.begin(), quoted.end()), bytes_of("payload"));
  }
  const FrameBytes lost = udp_frame("10.0.0.2", "10.0.0.1", "payload");
  FrameBytes word(2048);
  for (int i = 0; i < 200; ++i) static_cast<void>(host.refuse(parse_frame(lost), lost, now, word));
  EXPECT_EQ(host.counts().refusals_sent, 100U);
}

TEST_F(HostTest, AnnouncesEachAddress) {
  std::vector<FrameKind> kinds;
  for (std::size_t i = 0;; ++i) {
    FrameBytes frame(128);
    frame.resize(host.write_announcement(i, frame));
    if (frame.empty()) break;
    kinds.push_back(parse_frame(frame).kind);
  }
  EXPECT_THAT(kinds, ElementsAre(FrameKind::arp, FrameKind::icmp6, FrameKind::icmp6));
}

TEST_F(HostTest, JoinsTheGroupsOfItsSolicitations) {
  EXPECT_THAT(host.multicast_groups(),
              ElementsAre(multicast_mac_of(all_nodes()), multicast_mac_of(solicited_node_of(ip("fd00::1")))));
}

TEST_F(HostTest, IgnoresOtherTags) {
  FrameBytes arp(128);
  arp.resize(write_arp(arp, 7, ArpOperation::request, their4, {{}, us4.ip}, kBroadcastMac));
  EXPECT_FALSE(ask(arp));
}

}  // namespace
}  // namespace tributary::transport::ethernet::test
