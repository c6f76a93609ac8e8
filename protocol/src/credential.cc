#include "tributary/protocol/credential.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "protocol/src/openssl_key.h"
#include "tributary/protocol/assert.h"

namespace tributary {
namespace {

constexpr std::uint32_t kTokenMagic = 0x544b5254;  // "TRKT"
constexpr std::size_t kClaimsBytes = kTokenBytes - kSignatureBytes;
constexpr std::size_t kNameBytes = kNameBytesMax + 1;
constexpr std::size_t kFenceAt = kFencedJobBytesMax + 1;
static_assert(kFenceAt + sizeof(std::uint64_t) == kNameBytes);
constexpr std::size_t kTenantHeadBytes = 15;  // bytes of a long tenant's name that stay readable
constexpr std::size_t kTenantDigitBytes = 4;  // bytes of its hash: 8 hexadecimal digits
static_assert(kTenantHeadBytes + 1 + 2 * kTenantDigitBytes == kTokenTenantBytesMax);

constexpr int kScaleMax = std::bit_width(kRanksMax - 1);

/// The bytes of the claims, which the manager signs. Names are filled with zeros to 64 bytes; the last byte is always
/// 0. A fence uses the last 8 bytes of `job`, which are zeros after a short name. The weight and the tenant stand
/// between the zero behind the job's name and the fence. A reader that does not know them stops at that zero.
struct ClaimsWire {
  std::uint32_t magic;
  std::uint8_t version;
  std::uint8_t lane;
  std::uint8_t kind;  // lower four bits; upper four bits: the security of packets
  std::uint8_t root;  // lowest bit; the other bits: scale
  std::uint64_t group;
  std::int64_t expires_at;
  std::uint32_t epoch;
  std::uint32_t segment_bytes;
  std::uint32_t rank;
  std::uint32_t ranks;
  std::uint16_t child;
  std::uint16_t children;
  std::uint16_t window;
  std::uint16_t parent_port;
  char job[kNameBytes];
  char aggregator[kNameBytes];
  char parent_host[kNameBytes];
  std::byte masked_secret[kLinkSecretBytes];
};
static_assert(sizeof(ClaimsWire) == kClaimsBytes);

struct ContextFree {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
using openssl::bytes_of;
using openssl::Key;
using Context = std::unique_ptr<EVP_MD_CTX, ContextFree>;

Status check_name(std::string_view what, std::string_view value, bool may_be_empty) {
  if (value.empty() && !may_be_empty) return fail(Errc::bad_argument, "token: " + std::string(what) + " is empty");
  if (value.size() > kNameBytesMax) {
    return fail(Errc::bad_argument, "token: " + std::string(what) + " has " + std::to_string(value.size()) +
                                        " bytes; at most " + std::to_string(kNameBytesMax) + " are possible");
  }
  if (value.contains('\0')) return fail(Errc::bad_argument, "token: " + std::string(what) + " holds a zero byte");
  return {};
}

Status check_bounds(const TokenClaims& c) {
  const auto bad = [](const std::string& message) -> Status { return fail(Errc::bad_argument, "token: " + message); };
  if (c.lane >= kLanesMax) return bad("lane " + std::to_string(c.lane) + " is not below " + std::to_string(kLanesMax));
  if (c.children == 0 || c.children > kChildrenMax)
    return bad("children is " + std::to_string(c.children) + ", not 1 to " + std::to_string(kChildrenMax));
  if (c.child >= c.children)
    return bad("child " + std::to_string(c.child) + " is not below children " + std::to_string(c.children));
  if (c.window == 0 || c.window > kWindowMax)
    return bad("window is " + std::to_string(c.window) + ", not 1 to " + std::to_string(kWindowMax));
  if (c.segment_bytes < kSegmentBytesMin || c.segment_bytes > kSegmentBytesMax || c.segment_bytes % 64 != 0) {
    return bad("segment_bytes is " + std::to_string(c.segment_bytes) + ", not a multiple of 64 from " +
               std::to_string(kSegmentBytesMin) + " to " + std::to_string(kSegmentBytesMax));
  }
  if (c.ranks == 0 || c.ranks > kRanksMax)
    return bad("ranks is " + std::to_string(c.ranks) + ", not 1 to " + std::to_string(kRanksMax));
  if (c.rank >= c.ranks)
    return bad("rank " + std::to_string(c.rank) + " is not below ranks " + std::to_string(c.ranks));
  if (c.scale > kScaleMax || (c.kind == ChildKind::rank && c.scale != 0))
    return bad("scale " + std::to_string(c.scale) + " is no scale of " +
               (c.kind == ChildKind::rank ? "a rank" : "an aggregator") + ", 0 to " +
               std::to_string(c.kind == ChildKind::rank ? 0 : kScaleMax));
  if (c.fence > kFenceMax) return bad("fence " + std::to_string(c.fence) + " is above " + std::to_string(kFenceMax));
  if (c.weight == 0 || c.weight > kShareWeightMax)
    return bad("weight is " + std::to_string(c.weight) + ", not 1 to " + std::to_string(kShareWeightMax));
  if (!c.tenant.empty() && (c.tenant.size() > kTokenTenantBytesMax || !is_name(c.tenant)))
    return bad("the tenant is no name of at most " + std::to_string(kTokenTenantBytesMax) + " bytes");
  if (c.root != c.parent_host.empty())
    return bad(c.root ? "a root has a parent" : "no parent is named for an aggregator that is no root");
  return {};
}

template <std::size_t N>
void put_name(char (&to)[N], std::string_view from) noexcept {
  std::memset(to, 0, N);
  std::memcpy(to, from.data(), from.size() < N ? from.size() : N - 1);
}
template <std::size_t N>
std::string take_name(const char (&from)[N]) {
  return std::string(from, strnlen(from, N - 1));
}

/// Cuts a text after its last whole character of UTF-8 within `bytes_max`.
std::string_view cut(std::string_view text, std::size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

[[nodiscard]] bool has_share(const TokenClaims& claims) noexcept {
  return !claims.tenant.empty() || claims.weight != 1;
}

void put_job(ClaimsWire& wire, const TokenClaims& claims) noexcept {
  if (!has_share(claims)) {
    put_name(wire.job, claims.fence == 0 ? claims.job : cut(claims.job, kFencedJobBytesMax));
  } else {
    TRIBUTARY_ASSERT(claims.tenant.size() <= kTokenTenantBytesMax, "a tenant of {} bytes in a token",
                     claims.tenant.size());
    // A zero follows the job's name, and then the weight.
    const std::string_view job = cut(claims.job, kFenceAt - 2 - claims.tenant.size());
    put_name(wire.job, job);
    wire.job[job.size() + 1] = static_cast<char>(claims.weight);
    std::memcpy(wire.job + job.size() + 2, claims.tenant.data(), claims.tenant.size());
  }
  if (claims.fence != 0) std::memcpy(wire.job + kFenceAt, &claims.fence, sizeof claims.fence);
}

void take_job(TokenClaims& claims, const ClaimsWire& wire) {
  claims.job = take_name(wire.job);
  if (claims.job.size() > kFencedJobBytesMax) return;
  std::memcpy(&claims.fence, wire.job + kFenceAt, sizeof claims.fence);
  const std::size_t at = claims.job.size() + 1;
  if (at >= kFenceAt || wire.job[at] == 0) return;  // a manager that knows no weights signed it
  claims.weight = static_cast<std::uint8_t>(wire.job[at]);
  claims.tenant = std::string(wire.job + at + 1, strnlen(wire.job + at + 1, kFenceAt - at - 1));
}

ClaimsWire to_wire(const TokenClaims& c) noexcept {
  ClaimsWire w;
  std::memset(&w, 0, sizeof w);
  w.magic = kTokenMagic;
  w.version = kProtocolVersion;
  w.lane = c.lane;
  w.kind = static_cast<std::uint8_t>(static_cast<unsigned>(c.kind) | static_cast<unsigned>(c.security) << 4U);
  w.root = static_cast<std::uint8_t>((c.root ? 1U : 0U) | static_cast<unsigned>(c.scale) << 1U);
  w.group = c.group;
  w.expires_at = c.expires_at;
  w.epoch = c.epoch;
  w.segment_bytes = c.segment_bytes;
  w.rank = c.rank;
  w.ranks = c.ranks;
  w.child = c.child;
  w.children = c.children;
  w.window = c.window;
  w.parent_port = c.parent_port;
  put_job(w, c);
  put_name(w.aggregator, c.aggregator);
  put_name(w.parent_host, c.parent_host);
  std::memcpy(w.masked_secret, c.masked_secret.data(), c.masked_secret.size());
  return w;
}

TokenClaims from_wire(const ClaimsWire& w) {
  TokenClaims c;
  c.lane = w.lane;
  c.kind = static_cast<ChildKind>(w.kind & 15U);
  c.security = static_cast<PacketSecurity>(w.kind >> 4U);
  c.root = (w.root & 1U) != 0;
  c.scale = w.root >> 1U;
  c.group = w.group;
  c.expires_at = w.expires_at;
  c.epoch = w.epoch;
  c.segment_bytes = w.segment_bytes;
  c.rank = w.rank;
  c.ranks = w.ranks;
  c.child = w.child;
  c.children = w.children;
  c.window = w.window;
  c.parent_port = w.parent_port;
  take_job(c, w);
  c.aggregator = take_name(w.aggregator);
  c.parent_host = take_name(w.parent_host);
  std::memcpy(c.masked_secret.data(), w.masked_secret, c.masked_secret.size());
  return c;
}

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
  if (auto ok = check_bounds(claims); !ok) return std::unexpected(ok.error());
  for (const auto& [what, value, optional] :
       {std::tuple{"job", &claims.job, true}, std::tuple{"aggregator", &claims.aggregator, false},
        std::tuple{"parent_host", &claims.parent_host, true}}) {
    if (auto ok = check_name(what, *value, optional); !ok) return std::unexpected(ok.error());
  }
  const ClaimsWire wire = to_wire(claims);
  Token token;
  std::memcpy(token.data(), &wire, sizeof wire);
  Context context(EVP_MD_CTX_new());
  std::size_t bytes = kSignatureBytes;
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, impl_->key.get()) != 1 ||
      EVP_DigestSign(context.get(), bytes_of(token.data() + kClaimsBytes), &bytes, bytes_of(token.data()),
                     kClaimsBytes) != 1) {
    return fail(Errc::unsupported, "OpenSSL did not sign the token");
  }
  return token;
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
  Context context(EVP_MD_CTX_new());
  if (!context || EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, impl_->key.get()) != 1 ||
      EVP_DigestVerify(context.get(), bytes_of(token.data() + kClaimsBytes), kSignatureBytes, bytes_of(token.data()),
                       kClaimsBytes) != 1) {
    return fail(Errc::denied, "the token is not signed by this cluster's manager");
  }
  // Check the claims, although the manager signed them: they can be too old, or from a manager of another version.
  auto claims = read_claims(token);
  if (!claims) return claims;
  if (now_s >= claims->expires_at) {
    return fail(Errc::denied, "the token expired " + std::to_string(now_s - claims->expires_at) +
                                  " s ago; ask the manager for a new one (are the clocks set?)");
  }
  return claims;
}

Result<TokenClaims> read_claims(const Token& token) {
  ClaimsWire wire;
  std::memcpy(&wire, token.data(), sizeof wire);
  if (wire.magic != kTokenMagic) return fail(Errc::corrupt, "this is no token: its first bytes are not 'TRKT'");
  if (wire.version != kProtocolVersion) {
    return fail(Errc::corrupt, "the token was made for protocol version " + std::to_string(wire.version) +
                                   ", and this process speaks version " + std::to_string(kProtocolVersion) +
                                   "; run one version of Tributary on all hosts");
  }
  if ((wire.kind & 15U) > static_cast<std::uint8_t>(ChildKind::aggregator))
    return fail(Errc::corrupt, "the token names an unknown kind of child");
  if (wire.kind >> 4U > static_cast<std::uint8_t>(PacketSecurity::encrypt))
    return fail(Errc::corrupt, "the token asks for a security of packets that is not known here");
  TokenClaims claims = from_wire(wire);
  if (auto ok = check_bounds(claims); !ok) return fail(Errc::corrupt, ok.error().message);
  return claims;
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

std::string tenant_in_token(std::string_view name) {
  if (name.empty() || (name.size() <= kTokenTenantBytesMax && is_name(name))) return std::string(name);
  std::array<std::byte, 32> hash{};
  const auto bytes = std::as_bytes(std::span(name));
  const bool hashed =
      EVP_Digest(bytes_of(bytes.data()), bytes.size(), bytes_of(hash.data()), nullptr, EVP_sha256(), nullptr) == 1;
  TRIBUTARY_ASSERT(hashed, "OpenSSL has no SHA-256 for a tenant's name of {} bytes", name.size());
  std::string text(cut(name, kTenantHeadBytes));
  std::ranges::replace_if(text, [](char c) { return !is_name({&c, 1}); }, '_');
  return text + '~' + to_hex(std::span(hash).first(kTenantDigitBytes));
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kNameBytesMax &&
         std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; });
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
    return fail(Errc::corrupt, "a join whose sender has no name: it is 1 to 63 printable characters");
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
