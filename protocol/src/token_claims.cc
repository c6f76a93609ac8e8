#include "protocol/src/token_claims.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "protocol/src/names.h"
#include "tributary/protocol/assert.h"

namespace tributary::token {
namespace {

constexpr std::uint32_t kTokenMagic = 0x544b5254;  // "TRKT"
constexpr std::size_t kNameBytes = kNameBytesMax + 1;
constexpr std::size_t kFenceAt = kFencedJobBytesMax + 1;
static_assert(kFenceAt + sizeof(std::uint64_t) == kNameBytes);

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

Status check(const TokenClaims& claims) {
  if (auto ok = check_bounds(claims); !ok) return ok;
  if (auto ok = check_name("job", claims.job, true); !ok) return ok;
  if (auto ok = check_name("aggregator", claims.aggregator, false); !ok) return ok;
  return check_name("parent_host", claims.parent_host, true);
}

ClaimsBytes encode(const TokenClaims& claims) noexcept {
  const ClaimsWire wire = to_wire(claims);
  ClaimsBytes bytes;
  std::memcpy(bytes.data(), &wire, sizeof wire);
  return bytes;
}

Result<TokenClaims> decode(std::span<const std::byte, kClaimsBytes> bytes) {
  ClaimsWire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
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

}  // namespace tributary::token
