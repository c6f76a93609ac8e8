#pragma once
// Forwards the output of a rank, line by line.
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// One stream of one rank: a pipe to which the rank writes, and a descriptor of this process for the lines. Lines of
/// several ranks never mix: each line is forwarded whole, in one write. It ends with a newline, even if the rank's
/// stream ends without one. A line longer than kLineBytesMax is cut into lines of this length. `prefix` comes before
/// every line. Several lines of at most PIPE_BUF bytes together go in one write, so that they stay together even if
/// other processes write into the same pipe.
class RankOutput {
 public:
  static constexpr std::size_t kLineBytesMax = 64U << 10;

  [[nodiscard]] static Result<RankOutput> open(std::string prefix, int destination);
  RankOutput(RankOutput&& from) noexcept;
  RankOutput& operator=(RankOutput&&) = delete;
  ~RankOutput();

  /// Returns the rank's end of the pipe. Close it here after the rank's process has it.
  [[nodiscard]] int write_end() const noexcept { return write_end_; }
  void close_write_end() noexcept;
  /// Returns the end to poll; -1 after the end of the stream.
  [[nodiscard]] int read_end() const noexcept { return read_end_; }
  /// Reads and forwards the lines that have come. Returns false if this process's own output has no reader left.
  [[nodiscard]] bool forward();

 private:
  RankOutput(std::string prefix, int destination, int read_end, int write_end);
  [[nodiscard]] bool write_lines(bool ended);
  [[nodiscard]] bool write_line(std::string_view line, std::string& batch) const;
  std::string prefix_;
  int destination_;
  int read_end_;
  int write_end_;
  std::string pending_;
};

}  // namespace tributary::cli
