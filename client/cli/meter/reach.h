#pragma once
// Opens a TCP connection within a limit, and reads the kernel's facts about its path.
#include <chrono>
#include <cstdint>
#include <string>

#include "client/cli/perf/id_socket.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::cli::meter {

/// Connects, and tries the addresses of the host's name one by one. Errc::unreachable says why the last address failed.
/// Neither side sends frames longer than `frame_bytes_max`; 0: only the path's MTU limits their length.
[[nodiscard]] Result<Socket> connect_to(const Endpoint& to, std::chrono::milliseconds limit,
                                        std::uint32_t frame_bytes_max = 0);

/// The kernel's figures about a TCP connection until now.
struct PathFacts {
  std::uint32_t mtu_here = 0;   // MTU of the way out, as far as the kernel knows it
  std::uint32_t mtu_there = 0;  // MTU by the segment size that the other side offered
  std::uint64_t segments_out = 0;
  std::uint64_t segments_again = 0;  // segments sent again, except segments that the other side had already
  std::uint64_t segments_in = 0;
  std::uint64_t segments_in_late = 0;  // segments that came after later segments, as repeats of lost ones do
  double round_trip_seconds = 0;       // the least measured round trip
};
[[nodiscard]] PathFacts path_facts(const Socket& socket);
/// Returns the name of the interface with this side's address; empty: not known.
[[nodiscard]] std::string interface_of(const Socket& socket);

}  // namespace tributary::cli::meter
