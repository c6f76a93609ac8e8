#pragma once
// How a connection that was meant to go over TCP goes through shared memory, and back to TCP if nothing comes of it.
#include <functional>
#include <memory>
#include <string>

#include "transport/shm/shm_part.h"
#include "transport/tcp/tcp_core.h"

namespace tributary::transport {

/// The name that a listener at this address and port answers to; at any address, for those that mean all of them.
[[nodiscard]] std::string name_of_listener(const Endpoint& local);

/// One of this host, in this network namespace.
[[nodiscard]] bool is_local(const SocketAddress& address) noexcept;

/// For TcpCore::detour. `core` is the one that it is given to.
[[nodiscard]] std::function<bool(TcpConnection&, const SocketAddress&)> detour_by(TcpCore& core,
                                                                                  std::shared_ptr<ShmPart> part);

}  // namespace tributary::transport
