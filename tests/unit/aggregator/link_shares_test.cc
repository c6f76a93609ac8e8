// Shares of links: which qdiscs stay, the classes' figures, and the kernel's own view, in a network of the test's own.
#include "aggregator/daemon/link_shares.h"

#include <gmock/gmock.h>
#include <net/if.h>
#include <sched.h>

#include <array>
#include <cstdio>
#include <functional>
#include <thread>

#include "transport/udp/udp_port.h"

namespace tributary::aggregator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint32_t kOperators = 0x0001'0010;

TEST(LinkShares, AQdiscOfTheOperatorStaysAndIsNamed) {
  const auto kept = earlier_life({{"htb", 0x0001'0000, kAtRoot}}, kAtRoot, "eth0");
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, Errc::bad_config);
  EXPECT_THAT(kept.error().message,
              AllOf(HasSubstr("link_shares: 'kernel': the qdisc htb 1: is at the root of eth0, and it stays"),
                    HasSubstr("link_shares_parent")));
  const auto below = earlier_life({{"htb", 0x0001'0000, kAtRoot}, {"fq", 0x0002'0000, kOperators}}, kOperators, "eth0");
  ASSERT_FALSE(below);
  EXPECT_THAT(below.error().message, HasSubstr("the qdisc fq 2: is below 1:10 of eth0"));
}

TEST(LinkShares, TheSystemsQdiscGivesWayAndOurOwnIsMadeAnew) {
  EXPECT_EQ(earlier_life({}, kAtRoot, "eth0").value(), false);
  EXPECT_EQ(earlier_life({{"mq", 0, kAtRoot}, {"fq_codel", 0, 1}}, kAtRoot, "eth0").value(), false);
  EXPECT_EQ(earlier_life({{"htb", kLinkQdisc, kAtRoot}}, kAtRoot, "eth0").value(), true);
  EXPECT_EQ(earlier_life({{"tbf", 0x0001'0000, kAtRoot}, {"bfifo", 0, kOperators}}, kOperators, "eth0").value(), false);
  EXPECT_FALSE(earlier_life({{"drr", kLinkQdisc, kAtRoot}}, kAtRoot, "eth0")) << "another kind with our handle";
}

TEST(LinkShares, AParentMustExist) {
  const auto missing = earlier_life({{"fq", 0, kAtRoot}}, kOperators, "eth0");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("link_shares_parent is 1:10, but eth0 has no qdisc 1:"));
}

TEST(LinkShares, HandlesAreReadAsTcWritesThem) {
  EXPECT_EQ(parse_class_handle("1:10"), kOperators);
  EXPECT_EQ(parse_class_handle("ffff:a"), 0xFFFF'000AU);
  for (const char* wrong : {"", "1", "1:", ":1", "0:1", "1:0", "10000:1", "1:2:3", "1:g", "root", "-1:1"})
    EXPECT_FALSE(parse_class_handle(wrong)) << wrong;
  EXPECT_EQ(handle_text(kOperators), "1:10");
  EXPECT_EQ(handle_text(kLinkQdisc), "7471:");
}

TEST(LinkShares, WhatIsLeftIsDividedByWeightAndAllMayHaveTheWhole) {
  const SharedLink link{.interface = "eth0", .index = 2, .bytes_per_second = 12'500'000'000, .packet_bytes_max = 65536};
  const HtbClass one = party_class(link, kLinkFirst, 1), four = party_class(link, kLinkFirst + 1, 4);
  EXPECT_EQ(four.quantum_bytes, 4 * one.quantum_bytes);
  EXPECT_GE(one.quantum_bytes, link.packet_bytes_max) << "HTB counts packets, and not bytes, with a smaller quantum";
  EXPECT_EQ(one.ceil, link.bytes_per_second);
  EXPECT_EQ(default_class(link).quantum_bytes, one.quantum_bytes);
  EXPECT_LT(kLinkClassesMax * one.rate + default_class(link).rate, link.bytes_per_second);
}

std::string output_of(const std::string& command) {
  std::string text;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::array<char, 512> part{};
  while (pipe && std::fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
  return text;
}

bool done(const char* command) {
  return std::system(command) == 0;
}  // NOLINT(cert-env33-c)

/// Runs a function on a thread with a network of its own, whose interface near has the address 10.77.0.1.
bool beside_an_interface(const std::function<void()>& run) {
  bool permitted = false;
  std::thread thread([&] {
    permitted = ::unshare(CLONE_NEWNET) == 0 &&
                done(
                    "ip link add near type veth peer name far && ip address add 10.77.0.1/24 dev near && "
                    "ip link set near up && ip link set far up && tc qdisc add dev far root handle 7: htb");
    if (permitted) run();
  });
  thread.join();
  return permitted;
}

Settings settings_of(const std::string& parent = {}) {
  Settings settings;
  settings.link_shares = "kernel";
  settings.link_shares_parent = parent;
  settings.line_rate = 100'000'000'000;
  settings.listen = {{"10.77.0.1", 7471}};
  return settings;
}

/// Waits until tc shows `text` among the classes, or for 10 s.
bool shows(const std::string& text, const std::string& command = "tc class show dev near") {
  for (int i = 0; i < 100; ++i) {
    if (output_of(command).contains(text)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // how often to look; no result depends on it
  }
  return false;
}

TEST(LinkShares, TheKernelGetsAClassForEachPartyAndLosesAllAtTheEnd) {
  const bool permitted = beside_an_interface([] {
    auto shares = LinkShares::open(settings_of());
    ASSERT_TRUE(shares) << shares.error().message;
    const auto place = (*shares)->classes()->enter("physics", 4);
    EXPECT_TRUE(shows("class htb 7471:10 parent 7471:1"));
    const std::string classes = output_of("tc -d class show dev near");
    EXPECT_THAT(classes, HasSubstr("class htb 7471:1 root rate 97Gbit ceil 97Gbit"));
    EXPECT_THAT(classes, HasSubstr("class htb 7471:2 parent 7471:1"));
    EXPECT_THAT(classes, HasSubstr("quantum 262144"));
    EXPECT_THAT(output_of("tc qdisc show dev near"), HasSubstr("qdisc htb 7471: root"));
    EXPECT_THAT(output_of("tc qdisc show dev near"), HasSubstr("default 0x2"));
    EXPECT_EQ((*shares)->counts().refusals, 0U);
    const auto second = LinkShares::open(settings_of());
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("another aggregator of this host divides the link of near already"));
    shares->reset();
    EXPECT_THAT(output_of("tc qdisc show dev near"), Not(HasSubstr("htb")));
  });
  if (!permitted) GTEST_SKIP() << "this process may make no interfaces";
}

TEST(LinkShares, AQdiscOfAnEarlierLifeIsReplacedAndOneThatGoesIsMadeAgain) {
  const bool permitted = beside_an_interface([] {
    ASSERT_TRUE(
        done("tc qdisc add dev near root handle 7471: htb default 77 && "
             "tc class add dev near parent 7471: classid 7471:99 htb rate 1mbit"));
    ASSERT_TRUE(check_link_shares(settings_of()));
    const auto shares = LinkShares::open(settings_of());
    ASSERT_TRUE(shares) << shares.error().message;
    EXPECT_THAT(output_of("tc class show dev near"), Not(HasSubstr("7471:99")));
    const auto place = (*shares)->classes()->enter("physics", 1);
    EXPECT_TRUE(shows("7471:10 "));
    ASSERT_TRUE(done("tc qdisc del dev near root"));
    EXPECT_TRUE(shows("7471:10 "));
  });
  if (!permitted) GTEST_SKIP() << "this process may make no interfaces";
}

/// Queues datagrams of this priority to an address behind the interface near, and sends them.
void send(transport::packet::PacketPort& port, std::uint32_t priority, int count) {
  const std::vector<std::byte> header(transport::packet::kPacketHeaderBytes), payload(1300);
  const transport::packet::PacketAddress to{.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 77, 0, 2}, .port = 9};
  port.set_priority(priority);
  for (int i = 0; i < count; ++i) {
    if (port.send(to, header, payload)) continue;
    port.flush();
    ASSERT_TRUE(port.send(to, header, payload));
  }
  port.flush();
}

TEST(LinkShares, OverUdpAFloodOfOneTenantWaitsInItsClassAndLeavesTheSocketToOthers) {
  const bool permitted = beside_an_interface([] {
    ASSERT_TRUE(done("ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:02 dev near"));
    Settings settings = settings_of();
    settings.transport = "udp";
    settings.line_rate = 10'000'000;
    const auto shares = LinkShares::open(settings);
    ASSERT_TRUE(shares) << shares.error().message;
    const auto flood = (*shares)->classes()->enter("flood", 1), quiet = (*shares)->classes()->enter("quiet", 1);
    ASSERT_TRUE(shows("7471:11 "));
    const auto port =
        transport::udp::UdpPort::open({"10.77.0.1", 0}, {.send_buffer_bytes = (*shares)->send_buffer_bytes()});
    ASSERT_TRUE(port) << port.error().message;
    send(**port, flood->priority(), 5000);
    const std::uint64_t unsent = (*port)->counts().unsent_full;
    EXPECT_GT(unsent, 4000U) << "the class keeps 200 datagrams, and the link carries 900 in a second";
    send(**port, quiet->priority(), 10);
    EXPECT_EQ((*port)->counts().unsent_full, unsent);
    EXPECT_TRUE(shows("Sent 14060 bytes 10 pkt", "tc -s class show dev near")) << "in the class of the other tenant";
    ASSERT_TRUE(done("tc qdisc del dev near root"));
    EXPECT_TRUE(shows("7471:11 "));
    EXPECT_THAT(output_of("tc filter show dev near parent 7471:"), HasSubstr("bpf"));
  });
  if (!permitted) GTEST_SKIP() << "this process may make no interfaces";
}

TEST(LinkShares, AQueueOverUdpIsTwoMillisecondsOfTheLinkWithinLimits) {
  const auto of_rate = [](std::uint64_t bits) { return queue_bytes({.bytes_per_second = bits / 8}); };
  EXPECT_EQ(of_rate(100'000'000), 256U << 10);
  EXPECT_EQ(of_rate(100'000'000'000), 25'000'000U);
  EXPECT_EQ(of_rate(1'600'000'000'000), 64U << 20);
}

TEST(LinkShares, AClassOfTheOperatorsQdiscMayBeTheParent) {
  const bool permitted = beside_an_interface([] {
    ASSERT_TRUE(
        done("tc qdisc add dev near root handle 1: htb default 10 && "
             "tc class add dev near parent 1: classid 1:10 htb rate 1gbit"));
    const auto refused = LinkShares::open(settings_of());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("the qdisc htb 1: is at the root of near"));
    EXPECT_FALSE(check_link_shares(settings_of())) << "--check refuses what a start refuses";
    auto shares = LinkShares::open(settings_of("1:10"));
    ASSERT_TRUE(shares) << shares.error().message;
    EXPECT_THAT(output_of("tc qdisc show dev near"), HasSubstr("qdisc htb 7471: parent 1:10"));
    shares->reset();
    EXPECT_THAT(output_of("tc qdisc show dev near"),
                AllOf(HasSubstr("qdisc htb 1: root"), Not(HasSubstr("qdisc htb 7471:"))));
  });
  if (!permitted) GTEST_SKIP() << "this process may make no interfaces";
}

TEST(LinkShares, ARateThatNobodyKnowsIsAnErrorThatNamesTheSetting) {
  const bool permitted = beside_an_interface([] {
    Settings settings = settings_of();
    settings.line_rate = 0;
    const auto refused = LinkShares::open(settings);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("the driver of near does not tell its rate; set line_rate"));
    settings.listen = {{"10.99.0.1", 7471}};
    const auto nowhere = LinkShares::open(settings);
    ASSERT_FALSE(nowhere);
    EXPECT_THAT(nowhere.error().message, HasSubstr("no interface has the address '10.99.0.1'"));
  });
  if (!permitted) GTEST_SKIP() << "this process may make no interfaces";
}

}  // namespace
}  // namespace tributary::aggregator
