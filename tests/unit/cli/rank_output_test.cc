// Lines of several ranks never mix: the writer writes each line whole, in one call.
#include "client/cli/run/rank_output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <optional>
#include <thread>

namespace tributary::cli {
namespace {

using testing::ElementsAre;

/// A pipe that keeps each write apart from the next: one read returns one write, if the write fits PIPE_BUF.
class Destination {
 public:
  explicit Destination(int flags = O_DIRECT) {
    EXPECT_EQ(pipe2(ends_.data(), flags | O_CLOEXEC), 0);
    fcntl(ends_[0], F_SETFL, fcntl(ends_[0], F_GETFL) | O_NONBLOCK);
  }
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;
  ~Destination() {
    for (const int end : ends_) close(end);
  }
  [[nodiscard]] int end() const { return ends_[1]; }
  [[nodiscard]] std::optional<std::string> next() const {
    std::array<char, 1U << 17> buffer{};
    const ssize_t got = read(ends_[0], buffer.data(), buffer.size());
    if (got <= 0) return std::nullopt;
    return std::string(buffer.data(), static_cast<std::size_t>(got));
  }
  [[nodiscard]] std::vector<std::string> writes() const {
    std::vector<std::string> all;
    while (auto one = next()) all.push_back(*one);
    return all;
  }

 private:
  std::array<int, 2> ends_{};
};

void say(const RankOutput& rank, const std::string& text) {
  ASSERT_EQ(write(rank.write_end(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

RankOutput rank_with(const std::string& prefix, int destination) {
  auto output = RankOutput::open(prefix, destination);
  EXPECT_TRUE(output);
  fcntl(output->write_end(), F_SETPIPE_SZ, 1 << 18);  // so that the test need not read while a rank writes
  return std::move(*output);
}

TEST(RankOutput, HoldsALineUntilItIsWhole) {
  const Destination destination;
  RankOutput one = rank_with("[0] ", destination.end()), other = rank_with("[1] ", destination.end());
  say(one, "first half, ");
  say(other, "whole\n");
  EXPECT_TRUE(one.forward());
  EXPECT_TRUE(other.forward());
  EXPECT_THAT(destination.writes(), ElementsAre("[1] whole\n"));
  say(one, "second half\n");
  EXPECT_TRUE(one.forward());
  EXPECT_THAT(destination.writes(), ElementsAre("[0] first half, second half\n"));
}

TEST(RankOutput, EndsTheLastLineOfARankAlsoWithoutAPrefix) {
  const Destination destination;
  RankOutput one = rank_with("", destination.end());
  say(one, "no newline");
  one.close_write_end();
  EXPECT_TRUE(one.forward());
  EXPECT_THAT(destination.writes(), ElementsAre("no newline\n"));
  EXPECT_EQ(one.read_end(), -1);
}

TEST(RankOutput, WritesLinesTogetherOnlyWhereTheKernelKeepsThemTogether) {
  const Destination destination;
  RankOutput one = rank_with("[3] ", destination.end());
  std::string text, expected;
  for (int line = 0; line < 300; ++line) {
    const std::string words = "line " + std::to_string(line) + " " + std::string(20, 'x') + "\n";
    text += words;
    expected += "[3] " + words;
  }
  say(one, text);
  EXPECT_TRUE(one.forward());
  std::string all;
  for (const std::string& write : destination.writes()) {
    EXPECT_LE(write.size(), static_cast<std::size_t>(PIPE_BUF));
    EXPECT_TRUE(write.starts_with("[3] line ")) << write.substr(0, 40);
    EXPECT_EQ(write.back(), '\n') << "a write ends in the middle of a line";
    all += write;
  }
  EXPECT_EQ(all, expected);
}

TEST(RankOutput, CutsALineThatIsTooLongIntoWholeLines) {
  const Destination destination(0);
  fcntl(destination.end(), F_SETPIPE_SZ, 1 << 18);
  RankOutput one = rank_with("[0] ", destination.end());
  const std::string longest(RankOutput::kLineBytesMax, 'a');
  say(one, longest + "\n" + longest + "b\nshort\n");
  EXPECT_TRUE(one.forward());
  std::string all;
  while (const auto part = destination.next()) all += *part;
  EXPECT_EQ(all, "[0] " + longest + "\n[0] " + longest + "\n[0] b\n[0] short\n");
}

TEST(RankOutput, WaitsForADestinationThatDoesNotBlock) {
  const Destination destination(O_NONBLOCK);
  RankOutput one = rank_with("", destination.end());
  std::string text;
  for (int line = 0; line < 3000; ++line) text += std::string(50, 'y') + "\n";
  say(one, text);
  std::string all;
  std::jthread reader([&](const std::stop_token& stop) {
    while (all.size() < text.size() && !stop.stop_requested()) {
      if (const auto part = destination.next()) all += *part;
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(one.forward());
  reader.join();
  EXPECT_EQ(all, text);
}

TEST(RankOutput, ReportsThatItsReaderHasGone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  close(ends[0]);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  RankOutput one = rank_with("", ends[1]);
  say(one, "in vain\n");
  EXPECT_FALSE(one.forward());
  close(ends[1]);
  std::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace tributary::cli
