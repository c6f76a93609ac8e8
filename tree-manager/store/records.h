#pragma once
// Writes records as JSON text, the same for every kind of store.
#include <string>

#include "tree-manager/store/store.h"

namespace tributary::manager {

[[nodiscard]] std::string to_text(const AggregatorRecord& record);
[[nodiscard]] std::string to_text(const GroupRecord& record);
/// Errc::corrupt when the text is not what to_text wrote.
[[nodiscard]] Result<AggregatorRecord> aggregator_from_text(const std::string& text);
[[nodiscard]] Result<GroupRecord> group_from_text(const std::string& text);

}  // namespace tributary::manager
