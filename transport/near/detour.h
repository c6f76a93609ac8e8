#pragma once
// The detour of a connection over TCP: it first tries shared memory, and goes back to TCP if shared memory fails.
#include <functional>
#include <memory>
#include <string>

#include "transport/shm/shm_part.h"
#include "transport/tcp/tcp_core.h"

namespace tributary::transport {

/// The name of the Unix socket on which a listener at this address and port listens. All addresses that mean "any"
/// share one name.
[[nodiscard]] std::string name_of_listener(const Endpoint& local);

/// True for an address of this host, in this network namespace.
[[nodiscard]] bool is_local(const SocketAddress& address) noexcept;

/// Makes the function for TcpCore::detour. `core` is the core that gets the function.
[[nodiscard]] std::function<bool(TcpConnection&, const SocketAddress&)> detour_by(TcpCore& core,
                                                                                  std::shared_ptr<ShmPart> part);

}  // namespace tributary::transport
