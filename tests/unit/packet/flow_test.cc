// Tests a flow by itself: it skips the repeated bytes of a packet, and takes the new bytes.
#include "transport/packet/flow.h"

#include <gtest/gtest.h>

#include <vector>

namespace tributary::transport::packet {
namespace {

class Sink final : public PacketSink {
 public:
  bool send_packet(const DataHeader& header, std::span<std::byte> head, std::span<const std::byte> rest) override {
    headers.push_back(header.fields());
    bytes += head.size() - kPacketHeaderBytes + rest.size();
    return true;
  }
  std::vector<PacketHeader> headers;
  std::size_t bytes = 0;
};

class NoReader final : public StreamReader {
 public:
  std::size_t take(std::span<const std::byte> bytes) override { return bytes.size(); }
};

class FlowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    flow.open(9, 1000, kDatagramBytesMin, 0, now);
    flow.frames().push_borrowed({}, payload, 1);
    while (flow.transmit(sink, 32, now)) continue;
    ASSERT_EQ(sink.bytes, 1000U) << "the flow sends as far as the credit goes";
    told.number = 1;
    told.flags = packet_flags::kAcks;
    told.received = 1000;
    told.credit = 0;
    told.largest = static_cast<std::uint32_t>(sink.headers.back().number);
    ASSERT_TRUE(tell());
    ASSERT_FALSE(flow.wants_to_send(now)) << "the flow has no credit";
  }
  bool tell() {
    ++told.number;
    now += std::chrono::microseconds(10);
    return flow.receive({.header = told, .payload = {}, .at = now}, reader, now);
  }

  PacketSettings settings;
  ChunkPool pool{1U << 20U};
  PacketStatistics statistics;
  Flow flow{settings, pool, statistics};
  Sink sink;
  NoReader reader;
  std::vector<std::byte> payload = std::vector<std::byte>(100'000);
  PacketHeader told;
  TimePoint now = TimePoint{} + std::chrono::seconds(5);
};

TEST_F(FlowTest, TakesCreditThatComesWithNothingElse) {
  ASSERT_TRUE(tell());
  EXPECT_FALSE(flow.wants_to_send(now));
  told.credit = 500;
  ASSERT_TRUE(tell());
  EXPECT_TRUE(flow.wants_to_send(now));
}

TEST_F(FlowTest, CountsEveryRepeatAndAnswersNone) {
  const auto say = [&](std::uint64_t number, std::uint32_t offset, std::size_t bytes, std::uint16_t flags) {
    PacketHeader header;
    header.number = number;
    header.offset = offset;
    header.flags = flags;
    now += std::chrono::microseconds(10);
    return flow.receive({.header = header, .payload = std::span(payload).first(bytes), .at = now}, reader, now);
  };
  constexpr std::uint64_t kFirst = 10, kPackets = 200, kLate = 30;
  for (std::uint64_t i = 0; i < kPackets; ++i) {
    if (i != kLate) {
      ASSERT_TRUE(say(kFirst + i, static_cast<std::uint32_t>(i * 100), 100, 0));
    }
  }
  ASSERT_TRUE(say(kFirst + kPackets, kPackets * 100, 0, packet_flags::kPing));
  const auto answered = [&] {
    sink.headers.clear();
    while (flow.transmit(sink, 32, now)) continue;
    return !sink.headers.empty();
  };
  ASSERT_TRUE(answered());
  std::uint64_t repeats = 0;
  for (std::uint64_t i = 0; i <= kPackets; ++i) {
    if (i == kLate) continue;
    const bool ping = i == kPackets;
    EXPECT_FALSE(say(kFirst + i, static_cast<std::uint32_t>(i * 100), ping ? 0 : 100,
                     ping ? packet_flags::kPing : std::uint16_t{0}));
    EXPECT_EQ(statistics.repeats, ++repeats);
    EXPECT_FALSE(answered()) << i;
  }
  EXPECT_FALSE(say(1, 0, 0, packet_flags::kPing)) << "the number is too old for the bitmap";
  EXPECT_EQ(statistics.repeats, ++repeats);
  EXPECT_FALSE(answered());
  EXPECT_TRUE(say(kFirst + kLate, kLate * 100, 100, 0)) << "the packet is late, but brings missing bytes";
  EXPECT_EQ(statistics.repeats, repeats);
  EXPECT_TRUE(answered());
}

TEST_F(FlowTest, TriesLongerDatagramsAgainWhenAReportOfANarrowPathIsOld) {
  Flow wide{settings, pool, statistics};
  wide.open(9, 100'000, 9000, 0, now);
  EXPECT_EQ(wide.datagram_bytes(), 9000U);
  wide.narrow_to(10'000, now);
  EXPECT_EQ(wide.datagram_bytes(), 9000U);
  wide.narrow_to(1472, now);
  const auto sent_after = [&](Duration wait) {
    wide.frames().push_copy({}, payload);
    sink.bytes = 0;
    wide.transmit(sink, 1, now + wait);
    return sink.bytes;
  };
  EXPECT_EQ(sent_after({}), 1472 - kPacketHeaderBytes);
  EXPECT_EQ(sent_after(std::chrono::minutes(9)), 1472 - kPacketHeaderBytes);
  EXPECT_EQ(sent_after(std::chrono::minutes(10)), 9000 - kPacketHeaderBytes);
}

TEST_F(FlowTest, TakesMarksThatComeWithNothingElse) {
  const double before = flow.congestion().window();
  told.marked = 1;
  ASSERT_TRUE(tell());
  EXPECT_LT(flow.congestion().window(), before);
}

TEST_F(FlowTest, TakesAcknowledgementsOfLatePackets) {
  told.credit = 5000;
  ASSERT_TRUE(tell());
  while (flow.transmit(sink, 32, now)) continue;
  const std::uint64_t acknowledged = flow.frames().acknowledged();
  told.largest = static_cast<std::uint32_t>(sink.headers.back().number);
  ASSERT_TRUE(tell());
  EXPECT_EQ(flow.frames().acknowledged(), acknowledged);
  told.received = 1000 + kDatagramBytesMin - kPacketHeaderBytes;
  ASSERT_TRUE(tell());
  EXPECT_GT(flow.frames().acknowledged(), acknowledged);
}

}  // namespace
}  // namespace tributary::transport::packet
