// A rank finds its own troubles in the kernel's counters.
#include "client/operation/own_troubles.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

class OwnTroublesTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  void wait_of(const std::string& path, std::chrono::nanoseconds waited) {
    write(path, "1090062 " + std::to_string(waited.count()) + " 8\n");
  }
  void segments(std::uint64_t sent, std::uint64_t again) {
    write(files_.tcp, "Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens OutSegs RetransSegs InErrs\nTcp: 200 7 " +
                          std::to_string(sent) + " " + std::to_string(again) + " 0\n");
  }
  /// Lets a period go by. Returns whether the others should be told.
  bool look() { return troubles_.look(now_ += OwnTroubles::kPeriod); }

  const std::string folder_ = testing::TempDir() + "own-troubles-" + std::to_string(::getpid());
  void device_errors(std::uint64_t received, std::uint64_t sent) {
    const auto line = [](const std::string& name, std::uint64_t in, std::uint64_t out) {
      return name + ":  9 9 " + std::to_string(in) + " 7 7 7 7 7 9 9 " + std::to_string(out) + " 7 7 7 7 7\n";
    };
    write(files_.devices, "Inter-|   Receive\n face |bytes\n" + line("    lo", 0, 0) + line("  eth0", received, sent));
  }

  const OwnTroubles::Files files_{folder_ + "/main", folder_ + "/this", folder_ + "/tcp", folder_ + "/devices"};
  OwnTroubles troubles_{files_};
  transport::TimePoint now_{1h};
};

TEST_F(OwnTroublesTest, AThreadThatWaitsForAProcessorIsATrouble) {
  wait_of(files_.main_thread, 1s);
  EXPECT_FALSE(look()) << "one reading says nothing";
  EXPECT_FALSE(troubles_.current().any());
  wait_of(files_.main_thread, 1300ms);
  EXPECT_TRUE(look());
  EXPECT_EQ(troubles_.current().processor_wait, 60);
  EXPECT_TRUE(look()) << "the last second counts";
  EXPECT_TRUE(look()) << "the others learn that it is over";
  EXPECT_EQ(troubles_.current(), RankTroubles{});
  EXPECT_FALSE(look());
}

TEST_F(OwnTroublesTest, TheThreadThatLooksCountsToo) {
  wait_of(files_.main_thread, 1s);
  wait_of(files_.this_thread, 1s);
  static_cast<void>(look());
  wait_of(files_.main_thread, 1050ms);
  wait_of(files_.this_thread, 1400ms);
  EXPECT_TRUE(look());
  EXPECT_EQ(troubles_.current().processor_wait, 80);
}

TEST_F(OwnTroublesTest, AWordThatIsWantedCountsTheTimeSinceTheLastPeriod) {
  wait_of(files_.main_thread, 0s);
  static_cast<void>(look());
  wait_of(files_.main_thread, 200ms);
  EXPECT_EQ(troubles_.until(now_ + 100ms).processor_wait, 0) << "too short a time";
  EXPECT_EQ(troubles_.until(now_ + 400ms).processor_wait, 50);
  EXPECT_EQ(troubles_.current().processor_wait, 0);
}

TEST_F(OwnTroublesTest, ManyQuestionsReadTheCountersFourTimesASecond) {
  wait_of(files_.main_thread, 0s);
  static_cast<void>(look());
  wait_of(files_.main_thread, 200ms);
  EXPECT_EQ(troubles_.until(now_ + 400ms).processor_wait, 50);
  wait_of(files_.main_thread, 400ms);
  EXPECT_EQ(troubles_.until(now_ + 400ms + OwnTroubles::kPeriod / 2 - 1ms).processor_wait, 50) << "as it was before";
  EXPECT_EQ(troubles_.until(now_ + 400ms + OwnTroubles::kPeriod / 2).processor_wait, 61);
}

TEST_F(OwnTroublesTest, AFloodOfQuestionsGetsAFewAnswersASecond) {
  using Question = OwnTroubles::Question;
  std::uint32_t words = 0, sightings = 0;
  for (int i = 0; i < 3000; ++i) {
    now_ += 1ms;
    sightings += troubles_.may_answer(Question::sighting, now_) ? 1U : 0U;
    words += troubles_.may_answer(Question::word, now_) ? 1U : 0U;
  }
  EXPECT_EQ(words, 3 * OwnTroubles::kAnswersMax);
  EXPECT_EQ(sightings, words) << "each kind of questions has answers of its own";
}

TEST_F(OwnTroublesTest, LooksOnlyTwiceASecond) {
  wait_of(files_.main_thread, 0s);
  static_cast<void>(look());
  wait_of(files_.main_thread, 1s);
  EXPECT_FALSE(troubles_.look(now_ + OwnTroubles::kPeriod - 1ms));
  EXPECT_EQ(troubles_.current().processor_wait, 0);
}

TEST_F(OwnTroublesTest, SegmentsThatAreSentAgainAreATrouble) {
  segments(1'000'000, 50);
  static_cast<void>(look());
  segments(1'000'450, 100);
  EXPECT_TRUE(look());
  EXPECT_EQ(troubles_.current().sent_again, 10);
}

TEST_F(OwnTroublesTest, AFewSegmentsSayNothing) {
  segments(1000, 0);
  static_cast<void>(look());
  segments(1015, 14);
  EXPECT_FALSE(look());
  EXPECT_EQ(troubles_.current().sent_again, 0);
  segments(1045, 16);
  EXPECT_FALSE(look()) << "two losses may be chance";
}

TEST_F(OwnTroublesTest, ALinkThatLosesSoMuchThatItSendsLittleIsATrouble) {
  segments(1000, 0);
  static_cast<void>(look());
  segments(1030, 6);
  EXPECT_TRUE(look());
  EXPECT_EQ(troubles_.current().sent_again, 16);
}

TEST_F(OwnTroublesTest, PacketsOfTheRanksOwnTransportCountWithTheSegments) {
  OwnTroubles::Segments packets{.sent = 5000, .sent_again = 10};
  troubles_.also_count([&packets] { return packets; });
  segments(1000, 0);
  static_cast<void>(look());
  segments(1100, 0);
  packets = {.sent = 5080, .sent_again = 30};
  EXPECT_TRUE(look());
  EXPECT_EQ(troubles_.current().sent_again, 10);
}

TEST_F(OwnTroublesTest, ErrorsOfNetworkDevicesAreATrouble) {
  device_errors(1000, 50);
  static_cast<void>(look());
  EXPECT_FALSE(look());
  EXPECT_EQ(troubles_.current().device_errors, 0);
  device_errors(1002, 51);
  EXPECT_TRUE(look());
  EXPECT_EQ(troubles_.current().device_errors, 3);
  device_errors(9000, 51);
  EXPECT_TRUE(look());
  EXPECT_EQ(troubles_.current().device_errors, 100);
}

TEST_F(OwnTroublesTest, TheErrorsOfTheLastOfManyDevicesCount) {
  const auto write_devices = [this](std::uint64_t errors) {
    std::string text = "Inter-|   Receive\n face |bytes\n";
    for (int device = 0; device < 200; ++device)
      text += "  veth" + std::to_string(device) + ":  9 9 0 7 7 7 7 7 9 9 0 7 7 7 7 7\n";
    write(files_.devices, text + "  mlx0:  9 9 " + std::to_string(errors) + " 7 7 7 7 7 9 9 0 7 7 7 7 7\n");
  };
  write_devices(0);
  static_cast<void>(look());
  write_devices(7);
  EXPECT_TRUE(look());
  EXPECT_EQ(troubles_.current().device_errors, 7);
}

TEST_F(OwnTroublesTest, FilesThatAreMissingOrBrokenGiveNoTroubles) {
  for (const char* text : {"", "x y z\n", "1\n", "Tcp: OutSegs\nTcp: 1 2\n"}) {
    for (const std::string& file : {files_.main_thread, files_.tcp, files_.devices}) write(file, text);
    EXPECT_FALSE(look());
    EXPECT_EQ(troubles_.current(), RankTroubles{});
  }
}

// Several threads on one processor: each waits for most of the time.
TEST(OwnTroublesOfThisThread, AreFoundByTheRealKernel) {
  if (!processor_wait("/proc/thread-self/schedstat")) GTEST_SKIP() << "the kernel does not count how long threads wait";
  std::atomic<bool> over{false};
  std::vector<std::thread> others;
  OwnTroubles troubles;
  bool told = false;
  std::thread([&] {
    cpu_set_t one{};
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(std::max(sched_getcpu(), 0)), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);  // the threads that it starts inherit this
    for (int i = 0; i < 3; ++i)
      others.emplace_back([&over] {
        while (!over.load()) {
        }
      });
    for (const auto end = transport::Clock::now() + 10s; !told && transport::Clock::now() < end;)
      told = troubles.look(transport::Clock::now());
  }).join();
  over.store(true);
  for (std::thread& other : others) other.join();
  EXPECT_TRUE(told);
  EXPECT_GE(troubles.current().processor_wait, RankTroubles::kProcessorWaitMin);
}

TEST(RankTroublesText, TravelInOneNumber) {
  const RankTroubles troubles{.processor_wait = 87, .sent_again = 12, .device_errors = 30};
  for (const bool idle : {false, true}) {
    const std::uint64_t count = encode(RankWord{.troubles = troubles, .idle = idle});
    EXPECT_TRUE(tells_word(count));
    EXPECT_EQ(decode_word(count).troubles, troubles);
    EXPECT_EQ(decode_word(count).idle, idle);
  }
  EXPECT_FALSE(tells_word(0));
  EXPECT_FALSE(tells_sighting(encode(RankWord{.troubles = troubles, .idle = true})));
  for (const bool stopped : {false, true}) {
    const Sighting sighting{.rank = 5, .stopped = stopped, .processor_wait = 87};
    EXPECT_TRUE(tells_sighting(encode(sighting)));
    EXPECT_EQ(decode_sighting(encode(sighting), 5), sighting);
  }
  EXPECT_EQ(decode_sighting(UINT64_MAX, 7), (Sighting{.rank = 7, .stopped = true, .processor_wait = 100}));
  EXPECT_EQ(decode_word(UINT64_MAX).troubles,
            (RankTroubles{.processor_wait = 100, .sent_again = 100, .device_errors = 100}));
}

TEST(RankTroublesText, AreTheCauseOnlyIfTheyStandOut) {
  constexpr RankTroubles none{}, starved{.processor_wait = 80}, lossy{.sent_again = 9};
  EXPECT_EQ(cause_of(none, none, LateCause::late_call), LateCause::late_call);
  EXPECT_EQ(cause_of(starved, none, LateCause::late_call), LateCause::no_cpu);
  EXPECT_EQ(cause_of(starved, {.processor_wait = 70}, LateCause::slow_data), LateCause::slow_data);
  EXPECT_EQ(cause_of({.processor_wait = 39}, none, LateCause::silent), LateCause::silent);
  EXPECT_EQ(cause_of(lossy, none, LateCause::slow_data), LateCause::lossy_link);
  EXPECT_EQ(cause_of({.sent_again = 9, .device_errors = 4}, none, LateCause::slow_data), LateCause::device_errors);
  EXPECT_EQ(cause_of(lossy, {.sent_again = 7}, LateCause::slow_data), LateCause::slow_data);
}

}  // namespace
}  // namespace tributary::client
