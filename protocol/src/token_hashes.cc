#include "protocol/src/token_hashes.h"

#include <openssl/evp.h>

#include <bit>
#include <memory>

#include "protocol/src/openssl_key.h"
#include "tributary/protocol/assert.h"

namespace tributary::token {
namespace {

using openssl::bytes_of;

constexpr std::byte kLeaf{0}, kNode{1};

struct DigestFree {
  void operator()(EVP_MD* digest) const noexcept { EVP_MD_free(digest); }
};

/// The digest, looked up once: a look-up takes longer than a hash.
const EVP_MD* sha256() {
  static const std::unique_ptr<EVP_MD, DigestFree> digest(EVP_MD_fetch(nullptr, "SHA256", nullptr));
  return digest.get();
}

Hash hash_of(std::byte kind, std::span<const std::byte> first, std::span<const std::byte> second) {
  const openssl::Context context(EVP_MD_CTX_new());
  Hash hash{};
  const bool hashed = context && EVP_DigestInit_ex2(context.get(), sha256(), nullptr) == 1 &&
                      EVP_DigestUpdate(context.get(), &kind, 1) == 1 &&
                      EVP_DigestUpdate(context.get(), first.data(), first.size()) == 1 &&
                      EVP_DigestUpdate(context.get(), second.data(), second.size()) == 1 &&
                      EVP_DigestFinal_ex(context.get(), bytes_of(hash.data()), nullptr) == 1;
  TRIBUTARY_ASSERT(hashed, "OpenSSL did not hash {} bytes of a token with SHA-256", first.size() + second.size());
  return hash;
}

}  // namespace

Hash hash_of_leaf(std::span<const std::byte> token) {
  return hash_of(kLeaf, token, {});
}

Hash root_of(const Hash& leaf, const Way& way) {
  TRIBUTARY_ASSERT(way.levels <= kLevelsMax && way.place >> way.levels == 0, "place {} in a tree of {} levels",
                   way.place, way.levels);
  Hash hash = leaf;
  for (std::size_t level = 0; level < way.levels; ++level) {
    const bool right = (way.place >> level & 1U) != 0;
    hash = right ? hash_of(kNode, way.beside[level], hash) : hash_of(kNode, hash, way.beside[level]);
  }
  return hash;
}

HashTree::HashTree(std::span<const Hash> leaves) : levels_(0) {
  TRIBUTARY_ASSERT(!leaves.empty() && leaves.size() <= kTokensPerSignature, "a batch of {} tokens", leaves.size());
  levels_ = static_cast<std::uint8_t>(std::bit_width(leaves.size() - 1));
  const std::size_t width = std::size_t{1} << levels_;
  for (std::size_t i = 0; i < leaves.size(); ++i) nodes_[width + i] = leaves[i];
  for (std::size_t n = width - 1; n > 0; --n) nodes_[n] = hash_of(kNode, nodes_[2 * n], nodes_[2 * n + 1]);
}

Way HashTree::way_of(std::size_t place) const {
  Way way{.place = static_cast<std::uint8_t>(place), .levels = levels_};
  std::size_t node = (std::size_t{1} << levels_) + place;
  for (std::size_t level = 0; level < levels_; ++level, node /= 2) way.beside[level] = nodes_[node ^ 1U];
  TRIBUTARY_ASSERT(node == 1, "place {} is not in a tree of {} levels", place, levels_);
  return way;
}

}  // namespace tributary::token
