#pragma once
#include <cstdint>

#include "tree-manager/store/store.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::manager {

struct IssueTerms {
  std::int64_t expires_at = 0;  // seconds since 1970-01-01 UTC
  std::uint32_t lease_seconds = 0;
};

/// The group's descriptor with a token chain for every rank and lane: the rank's token for its leaf, then each
/// aggregator's token for its own parent, up to the root. Costs one signature per rank and lane (about 30 us); changes
/// nothing, and is meant to run outside of any lock.
[[nodiscard]] Result<GroupDescriptor> issue_descriptor(const SigningKey& key, const GroupRecord& group,
                                                       const IssueTerms& terms);

}  // namespace tributary::manager
