#pragma once
// One set of secrets for both ends of a test's connections.
#include "tributary/transport/link_keys.h"

namespace tributary::transport::test {

inline LinkSecret secret_of(std::uint8_t first) {
  LinkSecret secret;
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::byte>(first + i);
  return secret;
}

/// Returns keys for connections without a group, and for connections of group 77 (as in header_of()), epoch 1, lane 0.
inline std::shared_ptr<LinkKeys> sealed_keys(PacketSecurity security, std::uint8_t first = 1) {
  auto keys = std::make_shared<LinkKeys>(security);
  keys->set_peers(secret_of(first));
  keys->set_derive([first](const LinkName& name) { return secret_of(static_cast<std::uint8_t>(first + name.child)); });
  for (const std::uint32_t epoch : {0U, 1U, 2U, 3U}) {
    keys->add({77, epoch, 0, 5}, secret_of(static_cast<std::uint8_t>(first + 5)), security);
  }
  return keys;
}

}  // namespace tributary::transport::test
