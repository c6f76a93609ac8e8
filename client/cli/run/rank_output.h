#pragma once
// Forwards the output of a rank line by line.
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// One stream of one rank: a pipe that the rank writes to, and this process's descriptor to which its lines go. Lines of
/// several ranks never mix: each line goes out whole, in one write, ended by a newline even where the rank wrote none
/// before its stream ended. A line longer than kLineBytesMax is cut into lines of that length. `prefix` comes before
/// every line. Several lines go in one write if they take at most PIPE_BUF bytes, which keeps them together even where
/// other processes write into the same pipe.
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
  [[nodiscard]] bool write_line(std::string_view line, std::string& batch) const;
  std::string prefix_;
  int destination_;
  int read_end_;
  int write_end_;
  std::string pending_;
};

}  // namespace tributary::cli
