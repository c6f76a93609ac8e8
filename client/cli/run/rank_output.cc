#include "client/cli/run/rank_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(descriptor, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EAGAIN) {  // another process with this descriptor has made it non-blocking
      pollfd wait{descriptor, POLLOUT, 0};
      static_cast<void>(poll(&wait, 1, -1));
      continue;
    }
    if (done < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

}  // namespace

Result<RankOutput> RankOutput::open(std::string prefix, int destination) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(Errc::io, std::string("a pipe for a rank's output could not be made: ") + std::strerror(errno) +
                              "; raise the limit of open files (ulimit -n)");
  }
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return RankOutput(std::move(prefix), destination, ends[0], ends[1]);
}

RankOutput::RankOutput(std::string prefix, int destination, int read_end, int write_end)
    : prefix_(std::move(prefix)), destination_(destination), read_end_(read_end), write_end_(write_end) {}

RankOutput::RankOutput(RankOutput&& from) noexcept
    : prefix_(std::move(from.prefix_)),
      destination_(from.destination_),
      read_end_(std::exchange(from.read_end_, -1)),
      write_end_(std::exchange(from.write_end_, -1)),
      pending_(std::move(from.pending_)) {}

RankOutput::~RankOutput() {
  close_write_end();
  if (read_end_ >= 0) close(read_end_);
}

void RankOutput::close_write_end() noexcept {
  if (write_end_ >= 0) close(std::exchange(write_end_, -1));
}

bool RankOutput::forward() {
  std::array<char, 16384> buffer;
  while (read_end_ >= 0) {
    const ssize_t got = read(read_end_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    const bool ended = got <= 0;
    if (!ended) pending_.append(buffer.data(), static_cast<std::size_t>(got));
    if (ended) close(std::exchange(read_end_, -1));
    if (!write_lines(ended)) return false;
  }
  return true;
}

bool RankOutput::write_lines(bool ended) {
  std::string batch;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const std::size_t end = rest.substr(0, kLineBytesMax + 1).find('\n');
    const bool whole = end != std::string_view::npos;
    if (!whole && !ended && rest.size() <= kLineBytesMax) break;
    const std::string_view line = rest.substr(0, whole ? end : kLineBytesMax);
    if (!write_line(line, batch)) return false;
    rest.remove_prefix(line.size() + (whole ? 1 : 0));
  }
  TRIBUTARY_ASSERT(rest.empty() || (!ended && rest.size() <= kLineBytesMax), "{} bytes of a line are held back",
                   rest.size());
  pending_.erase(0, pending_.size() - rest.size());
  return write_all(destination_, batch);
}

bool RankOutput::write_line(std::string_view line, std::string& batch) const {
  const std::size_t length = prefix_.size() + line.size() + 1;
  if (!batch.empty() && batch.size() + length > PIPE_BUF) {
    if (!write_all(destination_, batch)) return false;
    batch.clear();
  }
  batch.append(prefix_).append(line).push_back('\n');
  return true;
}

}  // namespace tributary::cli
