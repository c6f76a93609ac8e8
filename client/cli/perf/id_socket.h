#pragma once
// The sockets by which a unique id travels.
#include <chrono>
#include <string>
#include <utility>

namespace tributary::cli {

class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& from) noexcept : descriptor_(std::exchange(from.descriptor_, -1)) {}
  Socket& operator=(Socket&& from) noexcept {
    std::swap(descriptor_, from.descriptor_);
    return *this;
  }
  ~Socket();
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] bool valid() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

/// Returns false if no event of `events` (poll(2)) has come by the deadline.
[[nodiscard]] bool wait_for(const Socket& socket, short events, std::chrono::steady_clock::time_point deadline);
/// Sends `line`, which has no line end. Returns false if it was not sent as a whole.
bool write_line(const Socket& socket, const std::string& line);

inline constexpr std::size_t kLineBytesMax = 512;

}  // namespace tributary::cli
