// Only the ranks of one host get access to their common memory.
#include "client/collectives/local/meeting_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace tributary::client::local {
namespace {

using namespace std::chrono_literals;

GroupSettings settings_of(std::uint32_t rank, std::uint32_t ranks) {
  return {.rank = rank, .ranks = ranks, .host = "here", .crowded = true};
}

Status barrier(LocalGroup& group) {
  return group.run({.signature = {.collective = Collective::barrier}});
}

TEST(LocalMeetingPlace, RanksThatKnowTheSecretShareMemory) {
  if (host_token().empty()) GTEST_SKIP() << "this system has no pidfd_open";
  const Secret secret = *random_secret();
  auto place = MeetingPlace::open(secret);
  ASSERT_TRUE(place) << place.error().message;
  std::vector<std::thread> others;
  for (std::uint32_t rank = 1; rank < 5; ++rank) {
    others.emplace_back([&secret, rank] {
      auto group = come(secret, settings_of(rank, 5), 10s);
      ASSERT_TRUE(group) << group.error().message;
      EXPECT_TRUE(barrier(**group));
    });
  }
  auto group = place->gather(settings_of(0, 5), 5s);
  ASSERT_TRUE(group) << group.error().message;
  EXPECT_TRUE(barrier(**group));
  for (auto& other : others) other.join();
}

TEST(LocalMeetingPlace, AProcessWithoutTheSecretIsNotLetIn) {
  if (host_token().empty()) GTEST_SKIP() << "this system has no pidfd_open";
  const Secret secret = *random_secret();
  auto place = MeetingPlace::open(secret);
  ASSERT_TRUE(place);
  EXPECT_FALSE(come(*random_secret(), settings_of(1, 2), 1s)) << "there is nobody at another secret's place";
  auto group = place->gather(settings_of(0, 2), 200ms);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, Errc::timed_out);
}

TEST(LocalMeetingPlace, ARankThatDiesOnTheWayLeavesNobodyWithAGroup) {
  if (host_token().empty()) GTEST_SKIP() << "this system has no pidfd_open";
  const Secret secret = *random_secret();
  auto place = MeetingPlace::open(secret);
  ASSERT_TRUE(place);
  std::thread other([&secret] { EXPECT_FALSE(come(secret, settings_of(1, 3), 10s)); });
  EXPECT_FALSE(place->gather(settings_of(0, 3), 300ms)) << "rank 2 never comes";
  other.join();
}

TEST(LocalMeetingPlace, LeavesNothingBehind) {
  const Secret secret = *random_secret();
  {
    auto place = MeetingPlace::open(secret);
    ASSERT_TRUE(place);
    EXPECT_FALSE(MeetingPlace::open(secret)) << "the name is taken while it is there";
  }
  EXPECT_TRUE(MeetingPlace::open(secret)) << "the name is free at once afterwards";
}

// Rank 0's offer comes from another process: sums of its sizes must not wrap, and a row must have a chunk.
TEST(LocalMeetingPlace, ImpossibleSizesAreRefused) {
  EXPECT_TRUE(can_be(settings_of(1, 5)));
  const auto with = [](std::size_t note_bytes, std::size_t chunk_bytes, std::size_t depth) {
    GroupSettings settings = settings_of(1, 5);
    settings.note_bytes = note_bytes;
    settings.chunk_bytes = chunk_bytes;
    settings.depth = depth;
    return can_be(settings);
  };
  EXPECT_TRUE(with(0, 1, 1));
  EXPECT_FALSE(with(8192, 4096, 0));
  EXPECT_FALSE(with(8192, 0, 1));
  EXPECT_FALSE(with(SIZE_MAX, 4096, 1));
  EXPECT_FALSE(with(8192, SIZE_MAX, 1));
  EXPECT_FALSE(with(8192, 4096, SIZE_MAX));
}

TEST(LocalMeetingPlace, ARankRefusesImpossibleSizes) {
  if (host_token().empty()) GTEST_SKIP() << "this system has no pidfd_open";
  const Secret secret = *random_secret();
  auto place = MeetingPlace::open(secret);
  ASSERT_TRUE(place);
  std::thread other([&secret] {
    const auto group = come(secret, settings_of(1, 2), 5s);
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, Errc::denied);
  });
  GroupSettings none = settings_of(0, 2);
  none.depth = 0;
  EXPECT_FALSE(place->gather(none, 5s));
  other.join();
}

}  // namespace
}  // namespace tributary::client::local
