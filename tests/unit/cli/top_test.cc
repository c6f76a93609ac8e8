// The picture of `tributary top`.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/top/top_state.h"

namespace tributary::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr ToldRate::TimePoint kStart{1h};

TEST(ToldRate, IsTheRateOfTheLastChange) {
  ToldRate rate;
  rate.tell(1000, kStart);
  EXPECT_EQ(rate.per_second(), 0) << "there is no earlier count to compare with";
  rate.tell(1000, kStart + 2s);
  rate.tell(3000, kStart + 4s);
  EXPECT_DOUBLE_EQ(rate.per_second(), 500);
  rate.tell(3000, kStart + 6s);
  EXPECT_DOUBLE_EQ(rate.per_second(), 500) << "the next count has not been told yet";
  rate.tell(3000, kStart + 30s);
  EXPECT_EQ(rate.per_second(), 0) << "the count stands still";
}

TEST(ToldRate, BeginsAgainWithARestartedProcess) {
  ToldRate rate;
  rate.tell(5000, kStart);
  rate.tell(10, kStart + 1s);
  EXPECT_EQ(rate.per_second(), 0);
  rate.tell(30, kStart + 2s);
  EXPECT_DOUBLE_EQ(rate.per_second(), 20);
}

json aggregator(const std::string& name, std::uint64_t summed) {
  return {{"name", name},
          {"state", "active"},
          {"host", "node-" + name},
          {"version", "0.1.0"},
          {"memory_reserved_bytes", 1024},
          {"memory_bytes", 2048},
          {"load", {{"lanes_active", 1}, {"sessions", 2}, {"contribution_bytes_total", summed}}}};
}

json group(std::uint64_t number, std::uint64_t in_network) {
  return {{"group", number},
          {"job", "train"},
          {"user", "ada"},
          {"ranks", 4},
          {"processes", 8},
          {"path", "in-network"},
          {"reason", ""},
          {"age_seconds", 61},
          {"traffic",
           {{"operations", 1},
            {"bytes_in_network", in_network},
            {"bytes_between_ranks", 0},
            {"bytes_in_shared_memory", 0}}}};
}

std::string text_of(const TopState& state) {
  std::string text;
  for (const TopLine& line : state.lines("top")) text += line.text + "\n";
  return text;
}

TEST(Top, ShowsRatesAndTheBusiestFirst) {
  TopState state;
  state.take({{"aggregators", {aggregator("a", 0), aggregator("b", 0)}}}, {{"groups", {group(1, 0), group(2, 0)}}},
             kStart);
  state.take({{"aggregators", {aggregator("a", 1024), aggregator("b", 4096)}}},
             {{"groups", {group(1, 2048), group(2, 8192)}}}, kStart + 2s);
  const std::string text = text_of(state);
  EXPECT_NE(text.find("aggregators: 2, groups: 2, ranks: 16; in-network 5 KiB/s, between ranks 0 B/s"),
            std::string::npos)
      << text;
  EXPECT_LT(text.find("node-b"), text.find("node-a")) << text;
  EXPECT_NE(text.find("2      train  ada   1m   8      in-network  4 KiB/s"), std::string::npos) << text;
  EXPECT_EQ(state.lines("top").front().text, "top");
}

TEST(Top, KeepsThePictureWhileTheManagerIsAway) {
  TopState state;
  state.take({{"aggregators", {aggregator("a", 0)}}}, {{"groups", json::array()}}, kStart);
  state.fail("no answer\n");
  EXPECT_EQ(state.lines("top")[2].text, "no answer?");
  EXPECT_EQ(state.lines("top")[2].colour, Colour::bad);
  EXPECT_NE(text_of(state).find("node-a"), std::string::npos);
}

TEST(Top, NamesLateRanks) {
  TopState state;
  json late = group(12, 0);
  for (int i = 0; i < 6; ++i) {
    late["late"].push_back({{"rank", 37 - i},
                            {"host", "node-5"},
                            {"lag_milliseconds", 812},
                            {"late_milliseconds", 9900},
                            {"operations_behind", i}});
  }
  state.take({{"aggregators", json::array()}}, {{"groups", {late}}}, kStart);
  const std::string text = text_of(state);
  EXPECT_NE(text.find("group 12: rank 37 on node-5 is late by 812 ms, for 9 s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("group 12: rank 36 on node-5 is late by 812 ms, 1 operation behind, for 9 s\n"),
            std::string::npos);
  EXPECT_NE(text.find("3 operations behind, for 9 s (and 2 more)\n"), std::string::npos) << text;
}

TEST(Top, RefusesADocumentThatIsNoAnswer) {
  TopState state;
  EXPECT_THROW(state.take(json::object(), json::object(), kStart), json::exception);
}

}  // namespace
}  // namespace tributary::cli
