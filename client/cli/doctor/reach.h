#pragma once
// Opens a TCP connection within a limit, and reads the kernel's facts about its path.
#include <chrono>
#include <cstdint>
#include <string>

#include "client/cli/perf/id_socket.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::cli::doctor {

/// Tries the addresses of the name one after the other. Errc::unreachable says why the last address failed.
[[nodiscard]] Result<Socket> connect_to(const Endpoint& to, std::chrono::milliseconds limit);

/// The kernel's figures about a TCP connection until now.
struct PathFacts {
  std::uint32_t mtu_here = 0;   // MTU of the way out, as far as the kernel knows it
  std::uint32_t mtu_there = 0;  // MTU by the segment size that the other side offered
  std::uint64_t segments_out = 0;
  std::uint64_t segments_again = 0;
  double round_trip_seconds = 0;  // the least measured round trip
};
[[nodiscard]] PathFacts path_facts(const Socket& socket);

}  // namespace tributary::cli::doctor
