#include "transport/dpdk/port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

#include "tests/dpdk/port/rings.h"
#include "transport/packet/payload_place.h"

namespace tributary::transport::dpdk::test {
namespace {

using namespace std::chrono_literals;
using packet::PacketAddress;
using packet::ReceivedPacket;
using ::testing::HasSubstr;

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed);
  return bytes;
}

struct Shown {
  PacketAddress from;
  std::vector<std::byte> bytes;
  bool refused = false;
};

/// Two hosts on one wire, with one port each.
class DpdkPortTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto names = wired_devices();
    a_device = Device::open(eal(), device_settings(names[0], "10.7.0.1/24", "fd07::1/64")).value();
    b_device = Device::open(eal(), device_settings(names[1], "10.7.0.2/24", "fd07::2/64")).value();
    a = DpdkPort::open(a_device, {.udp_port = 7471}).value();
    b = DpdkPort::open(b_device, {}).value();
  }
  static std::vector<Shown> take(DpdkPort& port) {
    std::array<ReceivedPacket, 64> into;
    std::vector<Shown> shown;
    for (const ReceivedPacket& one : std::span(into).first(port.receive(into))) {
      shown.push_back({one.from, {one.bytes.begin(), one.bytes.end()}, one.refused});
    }
    return shown;
  }
  /// Lets both ports work until `port` reports an event.
  std::vector<Shown> take_soon(DpdkPort& port, std::size_t count = 1) {
    DpdkPort& other = &port == a.get() ? *b : *a;
    std::vector<Shown> all;
    for (const auto end = Clock::now() + 5s; all.size() < count && Clock::now() < end;) {
      EXPECT_TRUE(take(other).empty());
      for (Shown& one : take(port)) all.push_back(std::move(one));
      other.flush();
      port.flush();
    }
    return all;
  }
  static PacketAddress at(const char* ip, std::uint16_t port) { return {ethernet::parse_ip(ip).value(), port}; }

  std::shared_ptr<Device> a_device, b_device;
  std::unique_ptr<DpdkPort> a, b;
};

TEST_F(DpdkPortTest, CarriesDatagramsOfEveryLengthBothWaysOverBothFamilies) {
  for (const auto& [a_ip, b_ip] : {std::pair{"10.7.0.1", "10.7.0.2"}, std::pair{"fd07::1", "fd07::2"}}) {
    const auto to_a = at(a_ip, 7471);
    const auto to_b = at(b_ip, b->local().port);
    const std::size_t most = a->datagram_bytes_max(to_b);
    EXPECT_EQ(most, a_ip[0] == 'f' ? 1452U : 1472U);
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{1024}, most - 33}) {
      const auto header = pattern(33, 1);  // an odd length, so that the bytes of the payload's sum change places
      const auto payload = pattern(size, 2);
      ASSERT_TRUE(b->send(to_a, header, payload));
      b->flush();
      const auto there = take_soon(*a);
      ASSERT_EQ(there.size(), 1U) << size;
      EXPECT_EQ(there[0].from, to_b);
      auto whole = header;
      whole.insert(whole.end(), payload.begin(), payload.end());
      EXPECT_EQ(there[0].bytes, whole);
      ASSERT_TRUE(a->send(there[0].from, payload, header));
      a->flush();
      const auto back = take_soon(*b);
      ASSERT_EQ(back.size(), 1U);
      EXPECT_EQ(back[0].from, to_a);
    }
  }
}

TEST_F(DpdkPortTest, KeepsDatagramsForAnUnknownNeighbourAndSendsThemInOrder) {
  for (unsigned i = 0; i < 10; ++i) ASSERT_TRUE(b->send(at("10.7.0.1", 7471), pattern(8, i), {}));
  b->flush();
  const auto shown = take_soon(*a, 10);
  ASSERT_EQ(shown.size(), 10U);
  for (unsigned i = 0; i < 10; ++i) EXPECT_EQ(shown[i].bytes, pattern(8, i));
}

TEST_F(DpdkPortTest, CountsDatagramsThatItCannotSend) {
  ASSERT_TRUE(b->send(at("192.168.9.9", 1), pattern(8, 0), {}));
  EXPECT_EQ(b->statistics().unsent_no_route, 1U) << "there is no gateway";
  ASSERT_TRUE(b->send(at("10.7.0.1", 7471), pattern(1473, 0), {}));
  EXPECT_EQ(b->statistics().unsent_too_long, 1U);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(b->send(at("10.7.0.77", 1), pattern(8, 0), {}));
  EXPECT_EQ(b->statistics().unsent_no_neighbour, 100U - 64U) << "64 datagrams wait for the neighbour";
}

TEST_F(DpdkPortTest, ReportsAFullDeviceAndTakesMoreLater) {
  ASSERT_TRUE(b->send(at("10.7.0.1", 7471), pattern(8, 0), {}));
  ASSERT_EQ(take_soon(*a).size(), 1U);
  unsigned sent = 0;  // no port takes packets out of the ring
  while (sent < 2000 && b->send(at("10.7.0.1", 7471), pattern(8, sent), {})) ++sent;
  EXPECT_EQ(sent, 255U + 64U) << "the ring holds 255 packets, and 64 more are staged";
  EXPECT_EQ(take_soon(*a, sent).size(), sent);
  EXPECT_TRUE(b->send(at("10.7.0.1", 7471), pattern(8, 0), {}));
}

TEST_F(DpdkPortTest, SendsAWholeFrameAsItSendsADatagram) {
  const auto packet_header = pattern(packet::kPacketHeaderBytes, 1);
  const auto frame_header = pattern(kFrameHeaderBytes, 2);
  auto headers = packet_header;
  headers.insert(headers.end(), frame_header.begin(), frame_header.end());
  for (const auto& [a_ip, b_ip] : {std::pair{"10.7.0.1", "10.7.0.2"}, std::pair{"fd07::1", "fd07::2"}}) {
    const auto to_b = at(b_ip, b->local().port);
    for (const std::size_t size : {std::size_t{300}, std::size_t{1001}, std::size_t{1024}}) {
      const auto payload = pattern(size, 3);
      const packet::FrameDatagram frame{.packet_header = std::span(packet_header).first<packet::kPacketHeaderBytes>(),
                                        .frame_header = std::span(frame_header).first<kFrameHeaderBytes>(),
                                        .payload = payload,
                                        .frame_header_sum = ethernet::partial_sum(frame_header),
                                        .payload_place = packet::payload_place(payload.data())};
      ASSERT_TRUE(a->send(to_b, headers, payload));
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(a->send_frame(to_b, frame));
      a->flush();
      const auto shown = take_soon(*b, 4);
      ASSERT_EQ(shown.size(), 4U) << "wrong checksums would be dropped";
      for (const Shown& one : shown) EXPECT_EQ(one.bytes, shown.front().bytes);
      EXPECT_EQ(shown.front().bytes.size(), headers.size() + size);
    }
  }
  const auto too_long = pattern(1472 - packet::kPacketHeaderBytes - kFrameHeaderBytes + 1, 4);
  EXPECT_TRUE(a->send_frame(at("10.7.0.2", 1), {.packet_header = std::span(packet_header).first<64>(),
                                                .frame_header = std::span(frame_header).first<64>(),
                                                .payload = too_long}));
  EXPECT_EQ(a->statistics().unsent_too_long, 1U);
}

TEST_F(DpdkPortTest, CopiesAPayloadForSeveralDestinationsOnce) {
  ASSERT_TRUE(b->send(at("10.7.0.1", 7471), pattern(8, 0), {}));
  ASSERT_EQ(take_soon(*a).size(), 1U);
  ASSERT_TRUE(b_device->sends_pieces());
  for (unsigned round = 0; round < 3; ++round) {
    auto payload = pattern(1024, round);  // perhaps in the memory of the last payload
    const auto other = pattern(300, round + 50);
    for (unsigned i = 0; i < 5; ++i) ASSERT_TRUE(b->send(at("10.7.0.1", 7471), pattern(33 + i, i), payload));
    ASSERT_TRUE(b->send(at("10.7.0.1", 7471), pattern(4, 9), other));
    b->flush();
    const auto sent = payload;
    std::ranges::fill(payload, std::byte{0xEE});  // from here on the memory may hold any bytes
    const auto shown = take_soon(*a, 6);
    ASSERT_EQ(shown.size(), 6U) << "round " << round;  // datagrams with wrong checksums would be dropped
    for (unsigned i = 0; i < 5; ++i) {
      auto whole = pattern(33 + i, i);
      whole.insert(whole.end(), sent.begin(), sent.end());
      EXPECT_EQ(shown[i].bytes, whole) << i << " in round " << round;
    }
    // When the port read the first packet of the first round, it could not know that more would follow.
    EXPECT_EQ(b->statistics().sent_shared, round == 0 ? 4U : 4 + round * 6);
  }
  a.reset();
  b.reset();
  EXPECT_EQ(a_device->mbufs_in_use() + b_device->mbufs_in_use(), 0U);
}

TEST_F(DpdkPortTest, KeepsPacketsThatAreStillRead) {
  std::vector<std::pair<void*, std::span<const std::byte>>> kept;
  const auto to_a = at("10.7.0.1", 7471);
  ASSERT_TRUE(b->send(to_a, pattern(8, 0), {}));
  ASSERT_EQ(take_soon(*a).size(), 1U);
  std::size_t refused = 0;
  for (unsigned sent = 0; sent < kKept + 10; ++sent) {
    ASSERT_TRUE(b->send(to_a, pattern(200, sent), {}));
    b->flush();
    std::array<ReceivedPacket, 64> into;
    std::size_t count = 0;
    for (const auto end = Clock::now() + 5s; count == 0 && Clock::now() < end;) count = a->receive(into);
    ASSERT_EQ(count, 1U);
    if (a->keep(into[0].buffer)) {
      kept.emplace_back(into[0].buffer, into[0].bytes);
    } else {
      ++refused;
    }
  }
  EXPECT_EQ(kept.size(), kKept);
  EXPECT_EQ(refused, 10U);
  for (unsigned i = 0; i < kept.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(kept[i].second, pattern(200, i))) << i;
    a->give_back(kept[i].first);
  }
  static_cast<void>(take(*a));
  a.reset();
  b.reset();
  EXPECT_EQ(a_device->mbufs_in_use() + b_device->mbufs_in_use(), 0U);
}

TEST_F(DpdkPortTest, ShowsAReturnedBufferUntilTheNextReceive) {
  const auto to_a = at("10.7.0.1", 7471);
  ASSERT_TRUE(b->send(to_a, pattern(8, 0), {}));
  ASSERT_EQ(take_soon(*a).size(), 1U);
  static_cast<void>(take(*a));
  for (unsigned sent = 0; sent < 3; ++sent) ASSERT_TRUE(b->send(to_a, pattern(200, sent), {}));
  b->flush();
  std::array<ReceivedPacket, 64> into;
  ASSERT_EQ(a->receive(into), 3U);
  const std::size_t in_use = b_device->mbufs_in_use();  // rings pass on the sender's buffers
  ASSERT_TRUE(a->keep(into[0].buffer));                 // the sender gets the buffer back at once: a reader may go on
                                                        // reading it
  a->give_back(into[0].buffer);
  ASSERT_TRUE(a->keep(into[2].buffer));  // kept twice, as for two payloads of one packet
  ASSERT_TRUE(a->keep(into[2].buffer));
  ASSERT_TRUE(a->keep(into[1].buffer));  // not in the order of arrival
  a->give_back(into[2].buffer);
  EXPECT_EQ(b_device->mbufs_in_use(), in_use) << "the buffer went back too soon";
  EXPECT_TRUE(std::ranges::equal(into[0].bytes, pattern(200, 0)));
  const std::array<std::span<const std::byte>, 2> kept{into[1].bytes, into[2].bytes};
  const std::array<void*, 2> buffers{into[1].buffer, into[2].buffer};
  static_cast<void>(a->receive(into));
  EXPECT_EQ(b_device->mbufs_in_use(), in_use - 1);
  EXPECT_TRUE(std::ranges::equal(kept[0], pattern(200, 1)));
  EXPECT_TRUE(std::ranges::equal(kept[1], pattern(200, 2)));
  for (void* const buffer : buffers) a->give_back(buffer);
  static_cast<void>(a->receive(into));
  EXPECT_EQ(b_device->mbufs_in_use(), in_use - 3);
}

TEST_F(DpdkPortTest, LeavesTheChecksumToAReaderThatWantsToVerifyIt) {
  const auto to_a = at("10.7.0.1", 7471);
  ASSERT_TRUE(b->send(to_a, pattern(8, 0), {}));
  ASSERT_EQ(take_soon(*a).size(), 1U);
  a->leave_checksums();
  for (const char* const ip : {"10.7.0.1", "fd07::1"}) {
    for (const std::size_t bytes : {1U, 8U, 999U, 1400U}) {
      ASSERT_TRUE(b->send(at(ip, 7471), pattern(bytes, 3), {}));
      std::array<ReceivedPacket, 64> into;
      std::size_t count = 0;
      for (const auto end = Clock::now() + 5s; count == 0 && Clock::now() < end;) {
        b->flush();
        count = a->receive(into);
        a->flush();
        static_cast<void>(take(*b));
      }
      ASSERT_EQ(count, 1U);
      ASSERT_TRUE(into[0].udp_besides) << ip;
      EXPECT_TRUE(ethernet::udp_right(*into[0].udp_besides, into[0].bytes)) << ip << ' ' << bytes;
      into[0].bytes[bytes / 2] ^= std::byte{8};
      EXPECT_FALSE(ethernet::udp_right(*into[0].udp_besides, into[0].bytes)) << ip << ' ' << bytes;
    }
  }
}

TEST_F(DpdkPortTest, ReportsAnUnusedPort) {
  const auto said = pattern(64, 5);
  ASSERT_TRUE(b->send(at("10.7.0.1", 9), said, {}));
  b->flush();
  const auto shown = take_soon(*b);
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_TRUE(shown[0].refused);
  EXPECT_EQ(shown[0].from, at("10.7.0.1", 9));
  EXPECT_EQ(shown[0].bytes, said);
  EXPECT_EQ(a->statistics().dropped_port, 1U);
}

TEST_F(DpdkPortTest, SleepsUntilItIsWokenIfTheSettingsAllowIt) {
  b.reset();
  b = DpdkPort::open(b_device, {.spin = {}, .sleep_max = 10s}).value();
  static_cast<void>(take(*b));
  const TimePoint start = Clock::now();
  std::jthread other([&] {
    std::this_thread::sleep_for(20ms);
    b->wake();
  });
  b->wait(10s);
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_GE(Clock::now() - start, 10ms);
  other.join();
  b->wake();
  b->wait(10s);
  EXPECT_LT(Clock::now() - start, 5s) << "a wake() that came before wait() counts";
}

TEST_F(DpdkPortTest, HasAPortOfItsOwn) {
  EXPECT_EQ(a->local().port, 7471);
  EXPECT_GE(b->local().port, 49152);
  EXPECT_THAT(DpdkPort::open(a_device, {.udp_port = 7472}).error().message, HasSubstr("queue 0"));
}

TEST_F(DpdkPortTest, GivesEveryPacketBufferBack) {
  for (int round = 0; round < 50; ++round) {
    for (unsigned i = 0; i < 20; ++i) static_cast<void>(b->send(at("10.7.0.1", 7471), pattern(100, i), {}));
    static_cast<void>(b->send(at("10.7.0.99", 7471), pattern(100, 0), {}));
    b->flush();
    static_cast<void>(take_soon(*a));
  }
  static_cast<void>(take(*a));
  while (!take(*a).empty()) continue;
  static_cast<void>(take(*b));
  static_cast<void>(take(*a));
  a.reset();
  b.reset();
  EXPECT_EQ(a_device->mbufs_in_use(), 0U);
  EXPECT_EQ(b_device->mbufs_in_use(), 0U);
}

TEST(Device, ErrorsSayWhatIsWrong) {
  const auto why = [](DeviceSettings settings) { return Device::open(eal(), settings).error().message; };
  EXPECT_THAT(why(device_settings("net_nothing9", "10.7.0.1/24", "fd07::1/64")), HasSubstr("net_nothing9"));
  auto many = device_settings(wired_devices()[0], "10.7.0.1/24", "fd07::1/64");
  many.queues = 3;
  EXPECT_THAT(why(many), HasSubstr("queues"));
  auto wrong = device_settings(wired_devices()[0], "10.7.0.1/24", "fd07::1/64");
  wrong.gateways = {ethernet::parse_ip("10.8.0.1").value()};
  EXPECT_THAT(why(wrong), HasSubstr("outside of the network"));
  auto gpu = device_settings(wired_devices()[0], "10.7.0.1/24", "fd07::1/64");
  gpu.gpu = "ffff:ff:1f.7";  // no device has this number
  EXPECT_THAT(why(gpu), HasSubstr("GPU"));
}

}  // namespace
}  // namespace tributary::transport::dpdk::test
