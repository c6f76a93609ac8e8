// Places that a peer may write to: which claims of the peer this side believes, and when the peer's right ends. The
// device has no memory windows; this program defines the registration calls, as device_memory_test.cc does.
#include "transport/verbs/places.h"

#include <gtest/gtest.h>

namespace tributary::transport::verbs {
namespace {

constexpr std::uint32_t kPlaces = 4;
constexpr std::size_t kBytes = 8192;

class PlacesHere : public testing::Test {
 protected:
  PlacesHere() {
    context.device = &device;
    domain.context = &context;
    places.open(domain, kPlaces, false, statistics);
  }
  static FrameHeader header(std::uint64_t sequence) {
    FrameHeader header;
    header.type = FrameType::result;
    header.sequence = sequence;
    header.payload_bytes = kBytes;
    return header;
  }
  std::uint32_t tell(std::uint64_t sequence, std::uint32_t queue_pair) {
    EXPECT_TRUE(places.expect(header(sequence), memory));
    const auto told = places.tell(registrations, queue_pair, nullptr);
    EXPECT_TRUE(told);
    return told ? told->where.number : UINT32_MAX;
  }

  ibv_device device{};
  ibv_context context{};
  ibv_pd domain{};
  VerbsSettings settings;
  KeptRanges kept;
  VerbsStatistics statistics;
  Registrations registrations{domain, {.peers = true}, settings, kept, statistics};
  std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
  Places places;
};

TEST_F(PlacesHere, AreWrittenOnceAsAWholeThroughTheirQueuePair) {
  const std::uint32_t number = tell(1, 2);
  EXPECT_EQ(statistics.memory_regions, 1U);
  EXPECT_FALSE(places.written(number, 1, kBytes)) << "the place belongs to another queue pair";
  EXPECT_FALSE(places.written(number, 2, kBytes - 1)) << "the peer has not written the whole place";
  EXPECT_FALSE(places.written((number + 1) % kPlaces, 2, kBytes)) << "the peer was not told this place";
  EXPECT_FALSE(places.written(kPlaces, 2, kBytes)) << "there is no place of this number";
  EXPECT_TRUE(places.written(number, 2, kBytes));
  EXPECT_EQ(statistics.memory_regions, 0U) << "the right has ended";
  EXPECT_FALSE(places.written(number, 2, kBytes)) << "twice";
  places.free(number);
  EXPECT_FALSE(places.written(number, 2, kBytes)) << "the place is free";
}

TEST_F(PlacesHere, AWriteToAnUnannouncedPlaceIsRefused) {
  ASSERT_TRUE(places.expect(header(1), memory));
  for (std::uint32_t number = 0; number < kPlaces; ++number) EXPECT_FALSE(places.written(number, 0, kBytes));
  EXPECT_TRUE(places.has_untold());
}

TEST_F(PlacesHere, AreWithdrawnOnlyByTheirOwnFrameEvenBeforeThePeerIsTold) {
  const std::uint32_t number = tell(1, 0);
  ASSERT_TRUE(places.expect(header(2), memory));
  EXPECT_FALSE(places.withdraw(header(3)));
  EXPECT_EQ(places.withdraw(header(1)), number);
  EXPECT_EQ(statistics.memory_regions, 0U);
  EXPECT_FALSE(places.written(number, 0, kBytes));
  EXPECT_TRUE(places.withdraw(header(2)));
  EXPECT_FALSE(places.has_untold());
  for (std::uint64_t sequence = 10; sequence < 10 + kPlaces; ++sequence)
    EXPECT_TRUE(places.expect(header(sequence), memory)) << "all places are free again";
  EXPECT_FALSE(places.expect(header(20), memory)) << "all places are in use";
}

}  // namespace
}  // namespace tributary::transport::verbs
