#pragma once
// Names the process at the other end in texts for people.
#include <string>

namespace tributary::transport {

/// `peer` is an address. That of a process that has connected ends with ":0", because it has no port here.
[[nodiscard]] inline std::string peer_text(const std::string& peer) {
  if (!peer.ends_with(":0")) return peer;
  return "a process of this host (" + peer.substr(0, peer.size() - 2) + ")";
}

}  // namespace tributary::transport
