// The log of a trace: one thread writes while another begins and takes recordings.
#include "tributary/protocol/trace_log.h"

#include <gtest/gtest.h>

#include <thread>

namespace tributary {
namespace {

using namespace std::chrono_literals;
using TimePoint = TraceLog<std::uint64_t>::TimePoint;

const TimePoint kNow{1000s};
const TimePoint kEnd{2000s};

TEST(TraceLog, IsOffUntilARecordingIsWanted) {
  TraceLog<std::uint64_t> log(4);
  EXPECT_FALSE(log.on());
  log.add(1, kNow);
  EXPECT_TRUE(log.take().events.empty());
  log.begin(kEnd);
  EXPECT_TRUE(log.on());
  log.add(2, kNow);
  EXPECT_EQ(log.take().events, (std::vector<std::uint64_t>{2}));
  EXPECT_FALSE(log.on());
  log.add(3, kNow);
  EXPECT_EQ(log.take().events, (std::vector<std::uint64_t>{2}));
}

TEST(TraceLog, KeepsTheFirstEventsAndCountsTheOthers) {
  TraceLog<std::uint64_t> log(2);
  log.begin(kEnd);
  for (std::uint64_t i = 0; i < 5; ++i) log.add(i, kNow);
  auto recording = log.take();
  EXPECT_EQ(recording.events, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(recording.lost, 3U);
  log.begin(kEnd);
  log.add(7, kNow);
  recording = log.take();
  EXPECT_EQ(recording.events, (std::vector<std::uint64_t>{7}));
  EXPECT_EQ(recording.lost, 0U);
}

TEST(TraceLog, EndsByItself) {
  TraceLog<std::uint64_t> log(4);
  log.begin(kEnd);
  log.add(1, kEnd);
  EXPECT_TRUE(log.on());
  log.add(2, kEnd + 1ns);
  EXPECT_FALSE(log.on());
  EXPECT_EQ(log.take().events, (std::vector<std::uint64_t>{1}));
}

TEST(TraceLog, HasNoEventsOfTheRecordingBefore) {
  TraceLog<std::uint64_t> log(4);
  log.begin(kEnd);
  log.add(1, kNow);
  log.begin(kEnd);
  EXPECT_TRUE(log.take().events.empty());
}

TEST(TraceLog, EachRecordingHasEventsInARowWhileAnotherThreadWrites) {
  TraceLog<std::uint64_t> log(64);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop.load(std::memory_order_relaxed); ++i) {
      if (log.on()) log.add(i, kNow);
    }
  });
  std::uint64_t last = 0;
  for (int i = 0; i < 2000; ++i) {
    log.begin(kEnd);
    if (i % 2 == 0) std::this_thread::yield();
    const auto recording = log.take();
    for (std::size_t k = 0; k < recording.events.size(); ++k) {
      EXPECT_GT(recording.events[k], last);
      if (k > 0) {
        EXPECT_EQ(recording.events[k], last + 1);
      }
      last = recording.events[k];
    }
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace tributary
