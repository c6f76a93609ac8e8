#include "tributary/protocol/credential.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "protocol/src/openssl_key.h"
#include "protocol/src/token_claims.h"
#include "protocol/src/token_hashes.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/reason.h"

namespace tributary {
namespace {

constexpr std::uint32_t kBatchMagic = 0x424b5254;  // "TRKB"
constexpr std::size_t kSaltBytes = 16;

/// A token's bytes. The claims and the salt are the leaf of the hash tree. The salt is random: without it, the holder
/// of a token could guess the claims of the token beside it, test them with the hash in its own token, and so make a
/// token that is not its own.
struct TokenWire {
  token::ClaimsBytes claims;
  std::byte salt[kSaltBytes];
  std::byte signature[kSignatureBytes];
  std::uint8_t place;
  std::uint8_t levels;
  std::uint8_t zeros[6];
  std::byte beside[token::kLevelsMax][token::kHashBytes];
};
static_assert(sizeof(TokenWire) == kTokenBytes);
constexpr std::size_t kLeafBytes = offsetof(TokenWire, signature);

/// The bytes that the manager signs: the root of a batch of tokens.
struct BatchWire {
  std::uint32_t magic;
  std::uint8_t version;
  std::uint8_t levels;
  std::uint8_t zeros[2];
  std::byte root[token::kHashBytes];
};
static_assert(sizeof(BatchWire) == 8 + token::kHashBytes);

BatchWire batch_of(std::uint8_t levels, const token::Hash& root) noexcept {
  BatchWire batch{.magic = kBatchMagic, .version = kProtocolVersion, .levels = levels, .zeros = {}, .root = {}};
  std::memcpy(batch.root, root.data(), root.size());
  return batch;
}

std::span<const std::byte> leaf_of(const Token& token) noexcept {
  return std::span(token).first<kLeafBytes>();
}

/// Writes the signature and the way to the root behind the leaf.
void put_way(Token& token, const token::Way& way, std::span<const std::byte, kSignatureBytes> signature) noexcept {
  TokenWire wire;
  std::memcpy(&wire, token.data(), sizeof wire);
  std::memcpy(wire.signature, signature.data(), signature.size());
  wire.place = way.place;
  wire.levels = way.levels;
  std::ranges::fill(wire.zeros, std::uint8_t{0});
  for (std::size_t i = 0; i < token::kLevelsMax; ++i)
    std::memcpy(wire.beside[i], way.beside[i].data(), token::kHashBytes);
  std::memcpy(token.data(), &wire, sizeof wire);
}

/// Errc::corrupt: the token's place does not exist in a hash tree of its height.
Result<token::Way> take_way(const TokenWire& wire) {
  token::Way way{.place = wire.place, .levels = wire.levels};
  if (way.levels > token::kLevelsMax || way.place >> way.levels != 0) {
    return fail(Errc::corrupt, "the token names place " + std::to_string(way.place) + " in a batch of " +
                                   std::to_string(way.levels) + " levels");
  }
  for (std::size_t i = 0; i < token::kLevelsMax; ++i)
    std::memcpy(way.beside[i].data(), wire.beside[i], token::kHashBytes);
  // The signature does not cover these bytes. They must be zero, so that no second form of the token is valid.
  const bool zeros = std::ranges::all_of(wire.zeros, [](std::uint8_t byte) { return byte == 0; });
  if (!zeros || std::any_of(way.beside.begin() + way.levels, way.beside.end(),
                            [](const token::Hash& hash) { return hash != token::Hash{}; })) {
    return fail(Errc::corrupt, "the token has unused bytes that are not zero");
  }
  return way;
}

using openssl::bytes_of;
using openssl::Context;
using openssl::Key;

}  // namespace

struct SigningKey::Impl {
  Key key;
};

SigningKey::SigningKey(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  std::size_t bytes = public_key_.size();
  EVP_PKEY_get_raw_public_key(impl_->key.get(), bytes_of(public_key_.data()), &bytes);
}
SigningKey::SigningKey(SigningKey&&) noexcept = default;
SigningKey& SigningKey::operator=(SigningKey&&) noexcept = default;
SigningKey::~SigningKey() = default;

Result<SigningKey> SigningKey::generate() {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  if (key == nullptr) return fail(Errc::unsupported, "OpenSSL made no Ed25519 key: its default provider is not loaded");
  auto impl = std::make_unique<Impl>();
  impl->key.reset(key);
  return SigningKey(std::move(impl));
}

Result<SigningKey> SigningKey::from_seed(std::span<const std::byte, kPrivateKeyBytes> seed) {
  auto impl = std::make_unique<Impl>();
  impl->key.reset(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes_of(seed.data()), seed.size()));
  if (!impl->key) return fail(Errc::unsupported, "OpenSSL did not take the Ed25519 key");
  return SigningKey(std::move(impl));
}

std::array<std::byte, kPrivateKeyBytes> SigningKey::seed() const {
  std::array<std::byte, kPrivateKeyBytes> seed{};
  std::size_t bytes = seed.size();
  EVP_PKEY_get_raw_private_key(impl_->key.get(), bytes_of(seed.data()), &bytes);
  return seed;
}

Result<Token> SigningKey::sign(const TokenClaims& claims) const {
  auto tokens = sign(std::span(&claims, 1));
  if (!tokens) return std::unexpected(tokens.error());
  return tokens->front();
}

Result<std::vector<Token>> SigningKey::sign(std::span<const TokenClaims> claims) const {
  std::vector<Token> tokens(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (auto ok = token::check(claims[i]); !ok) return std::unexpected(ok.error());
    std::ranges::copy(token::encode(claims[i]), tokens[i].begin());
  }
  for (std::span<Token> rest(tokens); !rest.empty();) {
    const std::span<Token> batch = rest.first(std::min(rest.size(), kTokensPerSignature));
    if (auto ok = sign_batch(batch); !ok) return std::unexpected(ok.error());
    rest = rest.subspan(batch.size());
  }
  return tokens;
}

/// Signs tokens whose claims are filled in.
Status SigningKey::sign_batch(std::span<Token> batch) const {
  std::array<std::array<std::byte, kSaltBytes>, kTokensPerSignature> salts;
  if (RAND_bytes(bytes_of(salts.front().data()), static_cast<int>(sizeof salts)) != 1)
    return fail(Errc::unsupported, "OpenSSL has no random bytes for a token");
  std::array<token::Hash, kTokensPerSignature> leaves;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    std::ranges::copy(salts[i], batch[i].begin() + token::kClaimsBytes);
    leaves[i] = token::hash_of_leaf(leaf_of(batch[i]));
  }
  const token::HashTree tree{std::span(leaves).first(batch.size())};
  const BatchWire root = batch_of(tree.levels(), tree.root());
  std::array<std::byte, kSignatureBytes> signature;
  std::size_t bytes = signature.size();
  const Context context(EVP_MD_CTX_new());
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, impl_->key.get()) != 1 ||
      EVP_DigestSign(context.get(), bytes_of(signature.data()), &bytes,
                     bytes_of(reinterpret_cast<const std::byte*>(&root)), sizeof root) != 1) {
    return fail(Errc::unsupported, "OpenSSL did not sign the token");
  }
  for (std::size_t i = 0; i < batch.size(); ++i) put_way(batch[i], tree.way_of(i), signature);
  return {};
}

struct TokenVerifier::Impl {
  Key key;
};

TokenVerifier::TokenVerifier(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenVerifier::TokenVerifier(TokenVerifier&&) noexcept = default;
TokenVerifier& TokenVerifier::operator=(TokenVerifier&&) noexcept = default;
TokenVerifier::~TokenVerifier() = default;

Result<TokenVerifier> TokenVerifier::create(const PublicKey& key) {
  auto impl = std::make_unique<Impl>();
  impl->key.reset(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(key.data()), key.size()));
  if (!impl->key) return fail(Errc::corrupt, "these 32 bytes are no Ed25519 public key");
  return TokenVerifier(std::move(impl));
}

Result<TokenClaims> TokenVerifier::verify(const Token& token, std::int64_t now_s) const {
  TokenWire wire;
  std::memcpy(&wire, token.data(), sizeof wire);
  const auto way = take_way(wire);
  if (!way) return std::unexpected(way.error());
  const BatchWire root = batch_of(way->levels, root_of(token::hash_of_leaf(leaf_of(token)), *way));
  const Context context(EVP_MD_CTX_new());
  if (!context || EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, impl_->key.get()) != 1 ||
      EVP_DigestVerify(context.get(), bytes_of(wire.signature), kSignatureBytes,
                       bytes_of(reinterpret_cast<const std::byte*>(&root)), sizeof root) != 1) {
    return fail(Errc::denied, Reason::join_token_forged, "the token is not signed by this cluster's manager");
  }
  // Check the claims, although the manager signed them: they can be too old, or from a manager of another version.
  auto claims = read_claims(token);
  if (!claims) return claims;
  if (now_s >= claims->expires_at) {
    return fail(Errc::denied, Reason::join_token_expired,
                "the token expired " + std::to_string(now_s - claims->expires_at) +
                    " s ago; ask the manager for a new one (are the clocks set?)");
  }
  return claims;
}

Result<TokenClaims> read_claims(const Token& token) {
  return token::decode(std::span(token).first<token::kClaimsBytes>());
}

std::vector<std::byte> encode(const TokenChain& chain) {
  std::vector<std::byte> bytes;
  bytes.reserve(chain.size() * kTokenBytes);
  for (const Token& token : chain) bytes.insert(bytes.end(), token.begin(), token.end());
  return bytes;
}

Result<TokenChain> decode_token_chain(std::span<const std::byte> bytes) {
  const std::size_t tokens = bytes.size() / kTokenBytes;
  if (bytes.size() % kTokenBytes != 0 || tokens == 0 || tokens > kTreeLevelsMax) {
    return fail(Errc::corrupt, "a token chain of " + std::to_string(bytes.size()) + " bytes; it is 1 to " +
                                   std::to_string(kTreeLevelsMax) + " tokens of " + std::to_string(kTokenBytes) +
                                   " bytes");
  }
  TokenChain chain(tokens);
  for (std::size_t i = 0; i < tokens; ++i) std::memcpy(chain[i].data(), bytes.data() + i * kTokenBytes, kTokenBytes);
  return chain;
}

std::vector<std::byte> encode_join(const TokenChain& chain, std::string_view name) {
  std::vector<std::byte> bytes = encode(chain);
  const auto more = std::as_bytes(std::span(name));
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

Result<JoinPayload> decode_join(std::span<const std::byte> bytes) {
  const std::size_t name_bytes = bytes.size() % kTokenBytes;
  auto tokens = decode_token_chain(bytes.first(bytes.size() - std::min(name_bytes, kNameBytesMax)));
  if (!tokens) return std::unexpected(tokens.error());
  const auto tail = bytes.subspan(tokens->size() * kTokenBytes);
  JoinPayload join{std::move(*tokens), std::string(reinterpret_cast<const char*>(tail.data()), tail.size())};
  if (!join.name.empty() && !is_name(join.name))
    return fail(Errc::corrupt, "a join with a wrong name of its sender: a name has 1 to 63 printable characters");
  return join;
}

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes_of(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

Result<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return fail(Errc::corrupt, "base64 text whose length is not a multiple of 4");
  if (text.empty()) return std::vector<std::byte>{};
  std::vector<std::byte> bytes(text.size() / 4 * 3);
  const int length = EVP_DecodeBlock(bytes_of(bytes.data()), reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
  if (length < 0) return fail(Errc::corrupt, "text that is not base64");
  std::size_t padding = 0;
  while (padding < 2 && text[text.size() - 1 - padding] == '=') ++padding;
  bytes.resize(static_cast<std::size_t>(length) - padding);
  return bytes;
}

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte b : bytes) {
    text += digits[std::to_integer<unsigned>(b) >> 4U];
    text += digits[std::to_integer<unsigned>(b) & 15U];
  }
  return text;
}

}  // namespace tributary
