#pragma once
// The 128 bytes by which ranks find each other: rank 0's address and a secret that every connection between ranks must
// prove to know.
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
  Endpoint root;  // host of at most 80 bytes
  Secret secret{};
};

[[nodiscard]] Result<Secret> random_secret();
[[nodiscard]] Result<UniqueIdBytes> encode(const UniqueId& id);
/// Errc::bad_argument when the bytes were never made by encode().
[[nodiscard]] Result<UniqueId> decode_unique_id(const UniqueIdBytes& bytes);

/// HMAC-SHA256 (RFC 2104) under the group's secret, so that the secret itself never travels. For connections over a
/// network, mutual_proof.h.
[[nodiscard]] std::string proof(const Secret& secret, std::string_view nonce, std::string_view purpose,
                                std::uint32_t rank);
/// Of the group's secret: one for a part of the group.
[[nodiscard]] Secret derived(const Secret& secret, std::string_view purpose, std::uint32_t number);
/// What packets between the group's ranks are sealed with.
[[nodiscard]] LinkSecret link_secret_of_peers(const Secret& secret);
/// Whose public half the manager is told, so that it can hide the secrets of the ranks' places from everybody else.
[[nodiscard]] Result<ExchangeKey> exchange_key_of_group(const Secret& secret);
/// Constant time.
[[nodiscard]] bool same_proof(std::string_view a, std::string_view b) noexcept;

}  // namespace tributary::client
