#pragma once
// The unique id: 128 bytes by which ranks find each other. It has rank 0's address and a secret. Both ends of every
// connection between ranks must prove that they know the secret.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::client {

inline constexpr std::size_t kUniqueIdBytes = 128;
inline constexpr std::size_t kSecretBytes = 32;
using Secret = std::array<std::byte, kSecretBytes>;
using UniqueIdBytes = std::array<unsigned char, kUniqueIdBytes>;

struct UniqueId {
  Endpoint root;  // rank 0's address; its host has at most 80 bytes
  Secret secret{};
};

[[nodiscard]] Result<Secret> random_secret();
[[nodiscard]] Result<UniqueIdBytes> encode(const UniqueId& id);
/// Reads the bytes of an id. Errc::bad_argument: encode() did not make these bytes.
[[nodiscard]] Result<UniqueId> decode_unique_id(const UniqueIdBytes& bytes);

/// Returns an HMAC-SHA256 (RFC 2104) under the group's secret, so that the secret itself never travels. Connections
/// over a network use mutual_proof.h instead.
[[nodiscard]] std::string proof(const Secret& secret, std::string_view nonce, std::string_view purpose,
                                std::uint32_t rank);
/// Derives from the group's secret a secret for one part of the group.
[[nodiscard]] Secret derived(const Secret& secret, std::string_view purpose, std::uint32_t number);
/// Returns the secret that seals packets between the group's ranks.
[[nodiscard]] LinkSecret link_secret_of_peers(const Secret& secret);
/// Returns the group's key pair. The manager gets its public half, and uses it to hide the secrets of the ranks' places
/// from all other processes.
[[nodiscard]] Result<ExchangeKey> exchange_key_of_group(const Secret& secret);
/// Returns whether the texts are equal; compares them in constant time.
[[nodiscard]] bool same_proof(std::string_view a, std::string_view b) noexcept;

}  // namespace tributary::client
