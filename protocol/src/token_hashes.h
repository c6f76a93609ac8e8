#pragma once
// The hash tree over a batch of tokens: the manager signs its root once, and each token has the hashes beside its way
// to the root (Merkle, "A Digital Signature Based on a Conventional Encryption Function", 1987). As in RFC 9162, leaves
// and inner nodes are hashed with different first bytes, so that no inner node can pass for a token.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/protocol/credential.h"

namespace tributary::token {

inline constexpr std::size_t kHashBytes = 32;  // SHA-256
inline constexpr std::size_t kLevelsMax = 3;
static_assert(std::size_t{1} << kLevelsMax == kTokensPerSignature);
using Hash = std::array<std::byte, kHashBytes>;

/// The way from one token to the root.
struct Way {
  std::uint8_t place = 0;                 // number of the token in its batch
  std::uint8_t levels = 0;                // 0 to kLevelsMax; `place` is below 2^levels
  std::array<Hash, kLevelsMax> beside{};  // the other child of each node on the way, from the token up; then zeros
};

[[nodiscard]] Hash hash_of_leaf(std::span<const std::byte> token);
/// Returns the root to which the way leads from this leaf.
[[nodiscard]] Hash root_of(const Hash& leaf, const Way& way);

/// The tree over 1 to kTokensPerSignature leaves. Missing leaves are zeros; nobody knows a token with this hash.
class HashTree {
 public:
  explicit HashTree(std::span<const Hash> leaves);
  [[nodiscard]] const Hash& root() const noexcept { return nodes_[1]; }
  [[nodiscard]] Way way_of(std::size_t place) const;
  [[nodiscard]] std::uint8_t levels() const noexcept { return levels_; }

 private:
  std::uint8_t levels_;
  std::array<Hash, 2 * kTokensPerSignature> nodes_{};  // node n has the children 2n and 2n + 1; the root is node 1
};

}  // namespace tributary::token
