#pragma once
// Chooses the number of threads of a rank that read and write.
#include <cstdint>
#include <string>

#include "client/api/settings.h"
#include "client/api/transports.h"

namespace tributary::client {

/// Returns the number of I/O threads for a link of `link_rate` bits per second (0: not known) if the process may run on
/// `cores` cores. 1: the thread that drives the communicator reads and writes itself. One thread moves 3 GB/s over TCP
/// (docs/performance.md), so each thread counts as 20 Gbit/s. The number is at most 8, and at most a quarter of the
/// cores, because the ranks of a host share its cores with the job's own threads.
[[nodiscard]] std::uint32_t io_threads_for(std::uint64_t link_rate, std::uint32_t cores) noexcept;

/// Returns the parameters of the transport "tcp" for a rank with this address.
[[nodiscard]] TcpWish tcp_wish(const ClientSettings& settings, const std::string& own_address);

}  // namespace tributary::client
