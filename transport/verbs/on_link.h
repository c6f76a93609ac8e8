#pragma once
#include <netinet/in.h>

#include "tributary/protocol/error.h"

namespace tributary::transport::verbs {

/// A network that an interface of this host belongs to, with the host's own address there.
struct LinkNetwork {
  sockaddr_storage address{};
  sockaddr_storage mask{};
};

/// True if `to` is a neighbour of the host with this address, in the same network, where no router is needed.
[[nodiscard]] bool is_neighbour(const LinkNetwork& network, const sockaddr& to) noexcept;
/// True if `to` is a neighbour by way of `from`, an address of this host; false if none of its interfaces has `from`.
[[nodiscard]] bool is_on_link(const sockaddr& from, const sockaddr& to);

}  // namespace tributary::transport::verbs
