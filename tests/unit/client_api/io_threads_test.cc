// The number of threads of a rank that read and write, if no setting says it.
#include "client/api/io_threads.h"

#include <gtest/gtest.h>

namespace tributary::client {
namespace {

constexpr std::uint64_t kGbit = 1'000'000'000;

TEST(IoThreads, AreOneWhereTheRateIsNotKnownOrOneCoreIsEnough) {
  EXPECT_EQ(io_threads_for(0, 128), 1U);
  EXPECT_EQ(io_threads_for(1 * kGbit, 128), 1U);
  EXPECT_EQ(io_threads_for(20 * kGbit, 128), 1U);
}

TEST(IoThreads, GrowWithTheRateAsFarAsThereAreCores) {
  EXPECT_EQ(io_threads_for(25 * kGbit, 128), 2U);
  EXPECT_EQ(io_threads_for(100 * kGbit, 128), 5U);
  EXPECT_EQ(io_threads_for(100 * kGbit, 16), 4U);
  EXPECT_EQ(io_threads_for(100 * kGbit, 7), 1U);
  EXPECT_EQ(io_threads_for(100 * kGbit, 0), 1U);
  EXPECT_EQ(io_threads_for(1600 * kGbit, 1024), 8U);
}

TEST(IoThreads, TheSettingCounts) {
  ClientSettings settings;
  settings.link_rate = 100 * kGbit;
  settings.io_threads = 3;
  EXPECT_EQ(tcp_wish(settings, "127.0.0.1").io_threads, 3U);
  ASSERT_TRUE(set(settings, "io_threads", "auto"));
  EXPECT_EQ(settings.io_threads, 0U);
  for (const char* const wrong : {"0", "33", "two", ""}) {
    EXPECT_FALSE(set(settings, "io_threads", wrong)) << wrong;
  }
}

}  // namespace
}  // namespace tributary::client
