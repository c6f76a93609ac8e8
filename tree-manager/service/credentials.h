#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "tree-manager/store/store.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::manager {

struct IssueTerms {
  std::int64_t expires_at = 0;  // seconds since 1970-01-01 UTC
  std::uint32_t lease_seconds = 0;
  // Of a group whose places have secrets:
  ExchangePublicKey exchange_key{};                      // the manager's; zeros: they have none
  SharedSecret of_ranks{};                               // the manager's and the ranks'
  std::map<std::string, SharedSecret> of_aggregators{};  // the manager's and each aggregator's, by name
};

/// What the manager's key and the one in `text` (base64) agree on. Errc::bad_argument for text that is none.
[[nodiscard]] Result<SharedSecret> agree_with(const ExchangeKey& own, const std::string& text);
/// Errc::bad_argument, unless agree_with() will find a secret. An empty text is none, and may be allowed.
[[nodiscard]] Status check_exchange_key(const ExchangeKey& own, const std::string& text, bool may_be_empty);

/// The group's descriptor with a token chain for every rank and lane: the rank's token for its leaf, then each
/// aggregator's token for its own parent, up to the root. Costs one signature per rank and lane (about 30 us); changes
/// nothing, and is meant to run outside of any lock.
[[nodiscard]] Result<GroupDescriptor> issue_descriptor(const SigningKey& key, const GroupRecord& group,
                                                       const IssueTerms& terms);

}  // namespace tributary::manager
