#pragma once
// Forwards the output of a rank line by line.
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// One stream of one rank: a pipe that the rank writes to, and the descriptor of this process to which the rank's lines
/// go. Lines are written whole, so that the output of ranks does not mix within a line; a line without an end is
/// written when the stream ends, or when it is longer than kLineBytesMax. `prefix` comes before every line; without it
/// the bytes stay as they are.
class RankOutput {
 public:
  static constexpr std::size_t kLineBytesMax = 64U << 10;

  [[nodiscard]] static Result<RankOutput> open(std::string prefix, int destination);
  RankOutput(RankOutput&& from) noexcept;
  RankOutput& operator=(RankOutput&&) = delete;
  ~RankOutput();

  /// The rank's end. Close it here once the rank has it.
  [[nodiscard]] int write_end() const noexcept { return write_end_; }
  void close_write_end() noexcept;
  /// The end to poll; -1 once the stream has ended.
  [[nodiscard]] int read_end() const noexcept { return read_end_; }
  /// Reads and forwards what has come. Returns false if this process's own output has no reader any more.
  [[nodiscard]] bool forward();

 private:
  RankOutput(std::string prefix, int destination, int read_end, int write_end);
  [[nodiscard]] bool write_lines(bool ended);
  std::string prefix_;
  int destination_;
  int read_end_;
  int write_end_;
  std::string pending_;
};

}  // namespace tributary::cli
