#pragma once
// The name of the process at the other end in messages.
#include <string>

namespace tributary::transport {

/// `peer` is an address. It ends with ":0" for a process that has connected, because such a process has no port here.
[[nodiscard]] inline std::string peer_text(const std::string& peer) {
  if (!peer.ends_with(":0")) return peer;
  return "a process of this host (" + peer.substr(0, peer.size() - 2) + ")";
}

}  // namespace tributary::transport
