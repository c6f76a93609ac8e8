#include "tree-manager/service/credentials.h"

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

/// Issues the places of a range of ranks in one lane, in two steps, so that all lanes' claims are signed together.
class LaneIssuer {
 public:
  LaneIssuer(const GroupRecord& group, std::uint8_t lane, const IssueTerms& terms, RankRange ranks)
      : group_(group), lane_(lane), tree_(group.lanes[lane]), terms_(terms), ranks_(ranks) {}

  /// Appends the claims of the ranks' tokens, then those of the aggregators above them.
  Status claim(std::vector<TokenClaims>& claims) {
    first_ = claims.size();
    for (std::uint32_t rank = ranks_.first; rank < ranks_.first + ranks_.count; ++rank) {
      auto of_rank = claims_of(rank);
      if (!of_rank) return std::unexpected(of_rank.error());
      claims.push_back(std::move(*of_rank));
    }
    place_of_node_.assign(tree_.nodes.size(), kNoPlace);
    for (std::uint32_t rank = ranks_.first; rank < ranks_.first + ranks_.count; ++rank) {
      if (auto ok = claim_above(rank, claims); !ok) return ok;
    }
    return {};
  }

  /// Returns the ranks' entries. `tokens`: the tokens for all claims.
  [[nodiscard]] std::vector<LaneEntry> entries(std::span<const Token> tokens) const {
    std::vector<LaneEntry> entries;
    entries.reserve(ranks_.count);
    for (std::uint32_t i = 0; i < ranks_.count; ++i) {
      std::uint32_t n = tree_.leaf_of_rank[ranks_.first + i];
      const TreeNode& leaf = tree_.nodes[n];
      LaneEntry entry{.aggregator = leaf.data, .aggregator_name = leaf.aggregator, .tokens = {tokens[first_ + i]}};
      for (; tree_.nodes[n].parent != kNoParent; n = tree_.nodes[n].parent) {
        TRIBUTARY_ASSERT(place_of_node_[n] < tokens.size(), "node {} of lane {} has no token", n, lane_);
        entry.tokens.push_back(tokens[place_of_node_[n]]);
      }
      entries.push_back(std::move(entry));
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

  /// Returns the claims of the token with which this aggregator joins its parent.
  Result<TokenClaims> claims_of_node(const TreeNode& node) const {
    TokenClaims claims = claims_at(tree_.nodes[node.parent]);
    claims.kind = ChildKind::aggregator;
    claims.child = static_cast<std::uint16_t>(node.child);
    claims.rank = node.children.front().lowest_rank;
    claims.scale = static_cast<std::uint8_t>(std::bit_width(node.ranks_below - 1));
    if (auto ok = seal(claims, secret_of(node.aggregator)); !ok) return std::unexpected(ok.error());
    return claims;
  }

  Result<TokenClaims> claims_of(std::uint32_t rank) const {
    TokenClaims claims = claims_at(tree_.nodes[tree_.leaf_of_rank[rank]]);
    claims.kind = ChildKind::rank;
    claims.child = tree_.child_of_rank[rank];
    claims.rank = rank;
    if (auto ok = seal(claims, &terms_.of_ranks); !ok) return std::unexpected(ok.error());
    return claims;
  }

  /// Appends the claims of the aggregators above `rank` that no other rank has needed. All ranks below an aggregator
  /// get the same token of it.
  Status claim_above(std::uint32_t rank, std::vector<TokenClaims>& claims) {
    for (std::uint32_t n = tree_.leaf_of_rank[rank]; tree_.nodes[n].parent != kNoParent; n = tree_.nodes[n].parent) {
      if (place_of_node_[n] != kNoPlace) return {};  // then the aggregators above it have their claims, too
      auto of_node = claims_of_node(tree_.nodes[n]);
      if (!of_node) return std::unexpected(of_node.error());
      place_of_node_[n] = claims.size();
      claims.push_back(std::move(*of_node));
    }
    return {};
  }

  static constexpr std::size_t kNoPlace = SIZE_MAX;
  const GroupRecord& group_;
  const std::uint8_t lane_;
  const LaneTree& tree_;
  const IssueTerms& terms_;
  const RankRange ranks_;
  std::size_t first_ = 0;                   // place of the first rank's token among all tokens
  std::vector<std::size_t> place_of_node_;  // place of each aggregator's token; kNoPlace: no rank needs it
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
  std::vector<LaneIssuer> issuers;
  std::vector<TokenClaims> claims;
  for (std::size_t lane = 0; lane < group.lanes.size(); ++lane) {
    issuers.emplace_back(group, static_cast<std::uint8_t>(lane), terms, ranks);
    if (auto ok = issuers.back().claim(claims); !ok) return std::unexpected(ok.error());
  }
  const auto tokens = key.sign(claims);
  if (!tokens) return std::unexpected(tokens.error());
  for (const LaneIssuer& issuer : issuers) page.lanes.push_back(issuer.entries(*tokens));
  return page;
}

}  // namespace tributary::manager
