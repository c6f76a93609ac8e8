#pragma once
// Writes records as JSON text, the same for every kind of store.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tree-manager/store/store.h"

namespace tributary::manager {

[[nodiscard]] std::string to_text(const AggregatorRecord& record);
[[nodiscard]] std::string to_text(const GroupRecord& record);
/// Errc::corrupt when the text is not what to_text wrote.
[[nodiscard]] Result<AggregatorRecord> aggregator_from_text(const std::string& text);
[[nodiscard]] Result<GroupRecord> group_from_text(const std::string& text);
/// Returns the member `rates` of a stored or sealed group: three numbers. Records of older managers have none. A rate
/// that is out of bounds, or no number, is not known.
[[nodiscard]] PathRates rates_from(const nlohmann::json& group);

}  // namespace tributary::manager
