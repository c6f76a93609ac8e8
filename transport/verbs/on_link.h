#pragma once
#include <netinet/in.h>

#include "tributary/protocol/error.h"

namespace tributary::transport::verbs {

/// A network that an interface of this host belongs to, with the host's own address there.
struct LinkNetwork {
  sockaddr_storage address{};
  sockaddr_storage mask{};
};

/// Whether `to` is a neighbour of the host that has this address: in the same network, where no router is needed.
[[nodiscard]] bool is_neighbour(const LinkNetwork& network, const sockaddr& to) noexcept;
/// Likewise for an address of this host, `from`; false if none of its interfaces has it.
[[nodiscard]] bool is_on_link(const sockaddr& from, const sockaddr& to);

}  // namespace tributary::transport::verbs
