#pragma once
// The numbers of sockets and helper threads of a TCP connection, counted as in NCCL's own socket transport.
//
// Source: NVIDIA's documentation of NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD, and net_socket.cc of NCCL 2.28.9.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tributary::nccl {

inline constexpr std::uint32_t kSocketThreadsMax = 16;
inline constexpr std::uint32_t kDataSocketsMax = 64;

/// The numbers at each end of one connection, without the first socket. Both 0: NCCL's own thread does all the work.
struct SocketCounts {
  std::uint16_t threads = 0;
  std::uint16_t sockets = 0;  // number of the sockets of all threads together
  friend bool operator==(const SocketCounts&, const SocketCounts&) = default;
};

/// Returns false for numbers that this plugin never chooses. The numbers may come in a handle of another process.
[[nodiscard]] bool is_possible(const SocketCounts& counts) noexcept;

/// Takes the values of the two variables (nullptr: not set), and the interface's vendor as /sys writes it ("0x1d0f").
/// If a variable is not set, the vendor decides: AWS has 2 threads with 8 sockets each, Google 4 threads with 1 socket
/// each, others none. Numbers that are too large become the greatest possible numbers, and texts that are no numbers
/// count as not set; `complaint` then says so.
[[nodiscard]] SocketCounts socket_counts(const char* threads, const char* sockets_per_thread, std::string_view vendor,
                                         std::string& complaint);

}  // namespace tributary::nccl
