#pragma once
// Opens a TCP connection within a limit, and tells what the kernel knows of its path.
#include <chrono>
#include <cstdint>
#include <string>

#include "client/cli/perf/id_socket.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::cli::doctor {

/// Tries each address of the name in turn. Errc::unreachable says why the last one failed.
[[nodiscard]] Result<Socket> connect_to(const Endpoint& to, std::chrono::milliseconds limit);

/// The kernel's figures of a TCP connection so far.
struct PathFacts {
  std::uint32_t mtu_here = 0;   // of the way out, as far as the kernel knows it
  std::uint32_t mtu_there = 0;  // by the segment size that the other side offered
  std::uint64_t segments_out = 0;
  std::uint64_t segments_again = 0;
  double round_trip_seconds = 0;  // the least seen
};
[[nodiscard]] PathFacts path_facts(const Socket& socket);

}  // namespace tributary::cli::doctor
