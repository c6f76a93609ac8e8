#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "tree-manager/store/store.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/token_page.h"

namespace tributary::manager {

struct IssueTerms {
  std::int64_t expires_at = 0;  // seconds since 1970-01-01 UTC
  std::uint32_t lease_seconds = 0;
  std::uint64_t fence = 0;  // number of the leadership that issues the tokens
  std::uint8_t weight = 1;  // weight of the owner's groups on the aggregators, 1 to kShareWeightMax
  // The members below are for a group whose places have secrets.
  ExchangePublicKey exchange_key{};                      // key of the manager; zeros: the places have no secrets
  SharedSecret of_ranks{};                               // secret shared by the manager and the ranks
  std::map<std::string, SharedSecret> of_aggregators{};  // key: name; secret shared by the manager and the aggregator
};

/// Returns the secret on which the manager's key and the key in `text` (base64) agree. Errc::bad_argument: `text` is no
/// key.
[[nodiscard]] Result<SharedSecret> agree_with(const ExchangeKey& own, const std::string& text);
/// Returns Errc::bad_argument unless agree_with() would return a secret. `may_be_empty` also allows an empty text.
[[nodiscard]] Status check_exchange_key(const ExchangeKey& own, const std::string& text, bool may_be_empty);

struct RankRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Returns the aggregators whose tokens the places of these ranks need.
[[nodiscard]] std::set<std::string> aggregators_above(const GroupRecord& group, RankRange ranks);

/// Returns the group's descriptor without places.
[[nodiscard]] GroupDescriptor describe(const GroupRecord& group, const IssueTerms& terms);
/// Issues the places of these ranks of the group: for each lane the rank's token for its leaf, then each aggregator's
/// token for its own parent, up to the root. Costs one signature (about 30 us) for kTokensPerSignature tokens. Changes
/// no state; callers hold no lock.
[[nodiscard]] Result<TokenPage> issue_places(const SigningKey& key, const GroupRecord& group, const IssueTerms& terms,
                                             RankRange ranks);

}  // namespace tributary::manager
