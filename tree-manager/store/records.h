#pragma once
// Writes and reads records as JSON text, which is the same for every kind of store.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tree-manager/store/store.h"

namespace tributary::manager {

[[nodiscard]] std::string to_text(const AggregatorRecord& record);
[[nodiscard]] std::string to_text(const GroupRecord& record);
/// Errc::corrupt if to_text did not write the text.
[[nodiscard]] Result<AggregatorRecord> aggregator_from_text(const std::string& text);
[[nodiscard]] Result<GroupRecord> group_from_text(const std::string& text);
/// Returns the member `rates` of a stored or sealed group, which has three numbers. Records of older managers have no
/// rates. A rate that is out of bounds, or no number, counts as not known.
[[nodiscard]] PathRates rates_from(const nlohmann::json& group);

}  // namespace tributary::manager
