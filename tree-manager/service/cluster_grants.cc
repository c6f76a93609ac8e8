// Gives a group to its ranks: the descriptor, the record that the manager signed, and the tokens of each lane.
#include <algorithm>

#include "tree-manager/service/cluster.h"
#include "tree-manager/service/credentials.h"

namespace tributary::manager {

/// Holds the lock only to read the weight and the aggregators' keys, because the agreement on each secret takes some 50
/// us.
Result<IssueTerms> Cluster::terms_for(const SigningKeys::Keys& keys, const GroupRecord& group,
                                      const RankRange& ranks) const {
  IssueTerms terms{.expires_at = clock_.unix_seconds() + settings_.token_life.count(),
                   .lease_seconds = static_cast<std::uint32_t>(settings_.group_lease.count()),
                   .fence = store_.fence()};
  const bool has_secrets = !group.exchange_key.empty();
  const auto names = has_secrets ? aggregators_above(group, ranks) : std::set<std::string>{};
  std::map<std::string, std::string> theirs;
  {
    const auto lock = lock_.read();
    terms.weight = rules_.of(group.owner).weight;
    for (const std::string& name : names) {
      const auto known = aggregators_.find(name);
      if (known != aggregators_.end()) theirs[name] = known->second.record.exchange_key;
    }
  }
  if (!has_secrets) return terms;
  const auto of_ranks = agree_with(keys.exchange, group.exchange_key);
  if (!of_ranks) return std::unexpected(of_ranks.error());
  terms.exchange_key = keys.exchange.public_key();
  terms.of_ranks = *of_ranks;
  for (const auto& [name, key] : theirs) {
    if (const auto secret = agree_with(keys.exchange, key)) terms.of_aggregators[name] = *secret;
  }
  return terms;
}

Result<GroupGrant> Cluster::grant(const std::shared_ptr<const GroupRecord>& group) const {
  const auto ranks = static_cast<std::uint32_t>(group->hosts.size());
  const RankRange told{0, ranks <= kPlacesInDescriptorMax && !group->lanes.empty() ? ranks : 0};
  const auto keys = signing_.now();
  const auto terms = terms_for(*keys, *group, told);
  if (!terms) return std::unexpected(terms.error());
  GroupGrant grant{.descriptor = describe(*group, *terms),
                   .record = keys->seal.seal(*group, clock_.unix_seconds(), store_.fence()),
                   .code = group->lanes.empty() ? group->code : ""};
  if (grant.descriptor.empty()) grant.retry_after_seconds = static_cast<std::uint32_t>(settings_.retry_after.count());
  auto page = issue_places(keys->signing, *group, *terms, told);
  if (!page) return std::unexpected(page.error());
  for (std::size_t lane = 0; lane < page->lanes.size(); ++lane) {
    grant.descriptor.lanes[lane].entries = std::move(page->lanes[lane]);
  }
  return grant;
}

Result<TokenPage> Cluster::places(std::uint64_t id, std::uint32_t epoch, std::uint32_t first,
                                  std::uint32_t count) const {
  const auto view = group(id);
  if (!view) return std::unexpected(view.error());
  const GroupRecord& record = *view->record;
  if (record.epoch != epoch || record.lanes.empty()) {
    return fail(Errc::mismatch, epoch_text(id, record.epoch) + (record.lanes.empty() ? ", without trees" : "") +
                                    "; there are no places of epoch " + std::to_string(epoch));
  }
  if (count == 0 || count > kTokenPageRanksMax || first >= record.hosts.size() || count > record.hosts.size() - first) {
    return fail(Errc::bad_argument, "group " + std::to_string(id) + " has " + std::to_string(record.hosts.size()) +
                                        " ranks: 'from' and 'count' name 1 to " + std::to_string(kTokenPageRanksMax) +
                                        " of them");
  }
  const RankRange ranks{first, count};
  const auto keys = signing_.now();
  const auto terms = terms_for(*keys, record, ranks);
  if (!terms) return std::unexpected(terms.error());
  return issue_places(keys->signing, record, *terms, ranks);
}

}  // namespace tributary::manager
