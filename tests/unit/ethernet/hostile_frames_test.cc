// Any frame may arrive. The parser reads and writes no byte outside of the frame (the sanitizers check this), and a
// datagram that it finds lies within the frame.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/ethernet/frames.h"
#include "transport/ethernet/host.h"
#include "transport/ethernet/icmp.h"
#include "transport/ethernet/quotation.h"

namespace tributary::transport::ethernet::test {
namespace {

std::vector<FrameBytes> seeds() {
  const Station them4{kTheirMac, ip("10.0.0.2")};
  const Station us4{kOurMac, ip("10.0.0.1")};
  const Station them6{kTheirMac, ip("fd00::2")};
  FrameBytes solicitation(128);
  solicitation.resize(write_solicitation(solicitation, 0, them6, ip("fd00::1"), std::nullopt));
  FrameBytes advertisement(128);
  advertisement.resize(write_advertisement(advertisement, 0, them6, {kOurMac, ip("fd00::1")}, true));
  return {udp_frame("10.0.0.2", "10.0.0.1", "payload"),
          udp_frame("fd00::2", "fd00::1", "payload"),
          udp_frame("10.0.0.2", "10.0.0.1", "payload", 5),
          arp_frame(ArpOperation::request, them4, us4),
          arp_frame(ArpOperation::reply, them4, us4),
          icmp_frame(them4, us4, {kIcmpEchoRequest}, "....payload"),
          icmp_frame(them4, us4, {kIcmpUnreachable}, std::string(40, '\x45')),
          solicitation,
          advertisement};
}

/// Copies the frame to memory of exactly its length, so that a sanitizer sees a read past it.
void show(Host& host, const FrameBytes& frame, TimePoint now) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[frame.size()]);
  std::copy(frame.begin(), frame.end(), exact.get());
  const std::span<const std::byte> bytes(exact.get(), frame.size());
  for (const bool checked : {false, true}) {
    const Frame parsed = parse_frame(bytes, {.ip = checked, .udp = checked});
    EXPECT_EQ(parsed.kind == FrameKind::dropped, parsed.drop != Drop::none);
    if (parsed.kind == FrameKind::dropped) continue;
    EXPECT_LE(std::size_t{parsed.body_offset} + parsed.body_bytes, frame.size());
    std::array<std::byte, 256> out;
    if (parsed.kind == FrameKind::udp) continue;
    EXPECT_LE(host.answer(parsed, bytes, now, out), out.size());
    if (const auto quotation = parse_quotation(parsed, bytes)) {
      EXPECT_LE(std::size_t{quotation->payload_offset} + quotation->payload_bytes, frame.size());
    }
  }
}

TEST(HostileFrames, HarmNobodyWhenTheyAreRandom) {
  Host host{{.mac = kOurMac, .addresses = {prefix("10.0.0.1/24"), prefix("fd00::1/64")}}};
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    FrameBytes frame(random() % 160);
    for (auto& byte : frame) byte = static_cast<std::byte>(random());
    show(host, frame, TimePoint{std::chrono::seconds(i)});
  }
}

TEST(HostileFrames, HarmNobodyWhenTheyAreAlmostRight) {
  Host host{{.mac = kOurMac, .addresses = {prefix("10.0.0.1/24"), prefix("fd00::1/64")}}};
  std::mt19937 random(2);
  const std::vector<FrameBytes> right = seeds();
  for (int i = 0; i < 50000; ++i) {
    FrameBytes frame = right[random() % right.size()];
    for (std::uint32_t changes = random() % 4; changes > 0; --changes) {
      frame[random() % frame.size()] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) frame.resize(random() % (frame.size() + 20));
    show(host, frame, TimePoint{std::chrono::seconds(i)});
  }
  EXPECT_LE(host.counts().neighbours.entries, 1024U);
}

}  // namespace
}  // namespace tributary::transport::ethernet::test
