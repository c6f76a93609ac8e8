#include "tree-manager/service/credentials.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace tributary::manager {
namespace {

class LaneIssuer {
 public:
  LaneIssuer(const SigningKey& key, const GroupRecord& group, std::uint8_t lane, const IssueTerms& terms)
      : key_(key), group_(group), lane_(lane), tree_(group.lanes[lane]), terms_(terms) {}

  Result<std::vector<LaneEntry>> issue(RankRange ranks) {
    node_tokens_.resize(tree_.nodes.size());
    std::vector<LaneEntry> entries;
    entries.reserve(ranks.count);
    for (std::uint32_t rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
      auto entry = entry_of(rank);
      if (!entry) return std::unexpected(entry.error());
      entries.push_back(std::move(*entry));
    }
    return entries;
  }

 private:
  /// Returns the claims that are the same for all children of `node`.
  [[nodiscard]] TokenClaims claims_at(const TreeNode& node) const {
    TokenClaims claims{.job = group_.job,
                       .aggregator = node.aggregator,
                       .group = group_.id,
                       .epoch = group_.epoch,
                       .lane = lane_,
                       .children = static_cast<std::uint16_t>(node.children.size()),
                       .window = static_cast<std::uint16_t>(window_of(group_, tree_)),
                       .segment_bytes = group_.segment_bytes,
                       .ranks = static_cast<std::uint32_t>(tree_.leaf_of_rank.size()),
                       .root = node.parent == kNoParent,
                       .expires_at = terms_.expires_at,
                       .security = group_.packet_security,
                       .fence = terms_.fence,
                       .tenant = tenant_in_token(group_.owner),
                       .weight = terms_.weight};
    if (!claims.root) {
      claims.parent_host = node.up.host;
      claims.parent_port = node.up.port;
    }
    return claims;
  }

  /// Sets the secret of the place that the claims name, masked for the holder of the token.
  Status seal(TokenClaims& claims, const SharedSecret* of_holder) const {
    if (terms_.exchange_key == ExchangePublicKey{}) return {};
    const auto verifier = terms_.of_aggregators.find(claims.aggregator);
    const bool in_clear = claims.security == PacketSecurity::off;
    if (in_clear && (verifier == terms_.of_aggregators.end() || of_holder == nullptr)) return {};
    if (verifier == terms_.of_aggregators.end() || of_holder == nullptr) {
      return fail(Errc::retry,
                  "an aggregator of the group's trees has registered without an exchange key, so packets "
                  "cannot be sealed: it is of an older version, or gone");
    }
    const LinkName name{claims.group, claims.epoch, claims.lane, claims.child};
    claims.masked_secret = masked(link_secret(verifier->second, name), *of_holder, name, claims.aggregator);
    return {};
  }
  [[nodiscard]] const SharedSecret* secret_of(const std::string& aggregator) const {
    const auto found = terms_.of_aggregators.find(aggregator);
    return found == terms_.of_aggregators.end() ? nullptr : &found->second;
  }

  /// Returns the token with which this aggregator joins its parent. The token is the same for all ranks below, and is
  /// signed once.
  Result<Token> token_of(std::uint32_t index) {
    if (node_tokens_[index]) return *node_tokens_[index];
    const TreeNode& node = tree_.nodes[index];
    TokenClaims claims = claims_at(tree_.nodes[node.parent]);
    claims.kind = ChildKind::aggregator;
    claims.child = static_cast<std::uint16_t>(node.child);
    claims.rank = node.children.front().lowest_rank;
    claims.scale = static_cast<std::uint8_t>(std::bit_width(node.ranks_below - 1));
    if (auto ok = seal(claims, secret_of(node.aggregator)); !ok) return std::unexpected(ok.error());
    auto token = key_.sign(claims);
    if (token) node_tokens_[index] = *token;
    return token;
  }

  Result<LaneEntry> entry_of(std::uint32_t rank) {
    const TreeNode& leaf = tree_.nodes[tree_.leaf_of_rank[rank]];
    TokenClaims claims = claims_at(leaf);
    claims.kind = ChildKind::rank;
    claims.child = tree_.child_of_rank[rank];
    claims.rank = rank;
    if (auto ok = seal(claims, &terms_.of_ranks); !ok) return std::unexpected(ok.error());
    auto token = key_.sign(claims);
    if (!token) return std::unexpected(token.error());
    LaneEntry entry{.aggregator = leaf.data, .aggregator_name = leaf.aggregator, .tokens = {*token}};
    for (std::uint32_t n = tree_.leaf_of_rank[rank]; tree_.nodes[n].parent != kNoParent; n = tree_.nodes[n].parent) {
      auto up = token_of(n);
      if (!up) return std::unexpected(up.error());
      entry.tokens.push_back(*up);
    }
    return entry;
  }

  const SigningKey& key_;
  const GroupRecord& group_;
  const std::uint8_t lane_;
  const LaneTree& tree_;
  const IssueTerms& terms_;
  std::vector<std::optional<Token>> node_tokens_;
};

}  // namespace

Result<SharedSecret> agree_with(const ExchangeKey& own, const std::string& text) {
  const auto bytes = from_base64(text);
  if (!bytes || bytes->size() != kExchangeKeyBytes) {
    return fail(Errc::bad_argument, "exchange_key is not base64 of 32 bytes");
  }
  ExchangePublicKey other;
  std::ranges::copy(*bytes, other.begin());
  auto secret = own.agree(other);
  if (!secret) return fail(Errc::bad_argument, "exchange_key: " + secret.error().message);
  return secret;
}

Status check_exchange_key(const ExchangeKey& own, const std::string& text, bool may_be_empty) {
  if (text.empty() && may_be_empty) return {};
  const auto secret = agree_with(own, text);
  return secret ? Status{} : std::unexpected(secret.error());
}

std::set<std::string> aggregators_above(const GroupRecord& group, RankRange ranks) {
  std::set<std::string> all;
  for (const LaneTree& lane : group.lanes) {
    std::set<std::string> names;  // names of this lane only: in another lane an aggregator may have another parent
    for (std::uint32_t rank = ranks.first; rank < ranks.first + ranks.count; ++rank) {
      // If an aggregator is in the set, all aggregators above it are in the set, too.
      std::uint32_t n = lane.leaf_of_rank[rank];
      while (names.insert(lane.nodes[n].aggregator).second && lane.nodes[n].parent != kNoParent) {
        n = lane.nodes[n].parent;
      }
    }
    all.merge(names);
  }
  return all;
}

GroupDescriptor describe(const GroupRecord& group, const IssueTerms& terms) {
  GroupDescriptor descriptor{.group = group.id,
                             .epoch = group.epoch,
                             .job = group.job,
                             .expires_at = terms.expires_at,
                             .lease_seconds = terms.lease_seconds,
                             .reason = group.reason,
                             .lanes = {},
                             .security = group.packet_security,
                             .exchange_key = terms.exchange_key,
                             .rates = group.rates,
                             .fence = terms.fence};
  for (const LaneTree& lane : group.lanes) {
    descriptor.lanes.push_back({.window = window_of(group, lane),
                                .segment_bytes = group.segment_bytes,
                                .levels = lane.levels,
                                .weight = lane.weight,
                                .entries = {}});
  }
  return descriptor;
}

Result<TokenPage> issue_places(const SigningKey& key, const GroupRecord& group, const IssueTerms& terms,
                               RankRange ranks) {
  TokenPage page{
      .group = group.id, .epoch = group.epoch, .first_rank = ranks.first, .expires_at = terms.expires_at, .lanes = {}};
  for (std::size_t lane = 0; lane < group.lanes.size(); ++lane) {
    auto entries = LaneIssuer(key, group, static_cast<std::uint8_t>(lane), terms).issue(ranks);
    if (!entries) return std::unexpected(entries.error());
    page.lanes.push_back(std::move(*entries));
  }
  return page;
}

}  // namespace tributary::manager
