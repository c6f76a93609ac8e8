#pragma once
// A connection over TCP first tries shared memory, and goes back to TCP if that fails.
#include <functional>
#include <memory>
#include <string>

#include "transport/shm/shm_part.h"
#include "transport/tcp/tcp_core.h"

namespace tributary::transport {

/// The name that a listener at this address and port answers to; one name for all addresses that mean "any".
[[nodiscard]] std::string name_of_listener(const Endpoint& local);

/// Whether this is an address of this host, in this network namespace.
[[nodiscard]] bool is_local(const SocketAddress& address) noexcept;

/// The function for TcpCore::detour. `core` is the core that it is given to.
[[nodiscard]] std::function<bool(TcpConnection&, const SocketAddress&)> detour_by(TcpCore& core,
                                                                                  std::shared_ptr<ShmPart> part);

}  // namespace tributary::transport
