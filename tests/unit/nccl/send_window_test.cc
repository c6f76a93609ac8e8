#include "client/plugins/nccl/p2p/sockets/send_window.h"

#include <gtest/gtest.h>

namespace tributary::nccl {
namespace {

using std::chrono::microseconds;

TEST(SendWindow, LetsThroughWhatIsNotUnderWay) {
  SendWindow window;
  EXPECT_EQ(window.room(), SendWindow::kBytesMin);
  window.note_written(SendWindow::kBytesMin - 1000);
  EXPECT_EQ(window.room(), 1000U);
  EXPECT_TRUE(window.surely_has(1000));
  EXPECT_FALSE(window.surely_has(1001)) << "the system has to be asked";
  window.note_under_way(300);
  EXPECT_EQ(window.room(), SendWindow::kBytesMin - 300);
  window.note_under_way(10 * SendWindow::kBytesMin);
  EXPECT_EQ(window.room(), 0U) << "the window has shrunk";
}

TEST(SendWindow, HoldsNoFlowBackThatAProcessorCouldFill) {
  for (const int rtt : {0, 1, 24, 50, 200, 10'000, 2'000'000}) {
    SendWindow window;
    window.note_round_trip(microseconds(rtt));
    EXPECT_GE(window.bytes(), SendWindow::kBytesMin);
    EXPECT_GE(window.bytes(), static_cast<std::size_t>(std::min(rtt, 1'000'000)) * SendWindow::kBytesPerMicrosecond);
  }
  SendWindow window;
  window.note_round_trip(microseconds(-1));
  EXPECT_EQ(window.bytes(), SendWindow::kBytesMin);
}

TEST(SendWindow, AsksForTheRoundTripAtFirstAndAgain) {
  SendWindow window;
  EXPECT_TRUE(window.wants_round_trip());
  window.note_round_trip(microseconds(5000));
  EXPECT_FALSE(window.wants_round_trip());
  window.note_written(SendWindow::kBytesBetweenQuestions);
  EXPECT_TRUE(window.wants_round_trip());
  window.note_round_trip(microseconds(10));
  EXPECT_EQ(window.bytes(), SendWindow::kBytesMin) << "the first round trips are often long";
}

}  // namespace
}  // namespace tributary::nccl
