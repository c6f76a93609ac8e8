#pragma once
// The numbers of sockets and helper threads of a connection over TCP, as NCCL's own socket transport counts them.
//
// Source: NVIDIA's documentation of NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD, and net_socket.cc of NCCL 2.28.9.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tributary::nccl {

inline constexpr std::uint32_t kSocketThreadsMax = 16;
inline constexpr std::uint32_t kDataSocketsMax = 64;

/// The numbers at each end of one connection, besides the first socket. Both 0: NCCL's own thread does all the work.
struct SocketCounts {
  std::uint16_t threads = 0;
  std::uint16_t sockets = 0;  // the sockets of all threads together
  friend bool operator==(const SocketCounts&, const SocketCounts&) = default;
};

/// Returns false for numbers that no process of this plugin has: handles come from other processes.
[[nodiscard]] bool is_possible(const SocketCounts& counts) noexcept;

/// Takes the values of the two variables, nullptr for a variable that is not set, and the interface's vendor as /sys
/// has it ("0x1d0f"). Where a variable is not set the vendor decides: AWS 2 threads of 8 sockets, Google 4 of 1, others
/// none. Numbers that are too large become the greatest possible, and words that are no numbers count as not set;
/// `complaint` says so then.
[[nodiscard]] SocketCounts socket_counts(const char* threads, const char* sockets_per_thread, std::string_view vendor,
                                         std::string& complaint);

}  // namespace tributary::nccl
