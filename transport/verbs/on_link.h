#pragma once
#include <netinet/in.h>

#include "tributary/protocol/error.h"

namespace tributary::transport::verbs {

/// A network of an interface of this host, with the host's own address there.
struct LinkNetwork {
  sockaddr_storage address{};
  sockaddr_storage mask{};
};

/// True if `to` is in the same network as this address of the host, so that no router is needed.
[[nodiscard]] bool is_neighbour(const LinkNetwork& network, const sockaddr& to) noexcept;
/// True if `to` is in the network of `from`, an address of this host. False if no interface of this host has `from`.
[[nodiscard]] bool is_on_link(const sockaddr& from, const sockaddr& to);

}  // namespace tributary::transport::verbs
