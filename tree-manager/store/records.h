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
/// Returns the member `rates` of a stored or sealed group, which rates_to_json() wrote. Records of older managers
/// have three rates, or none. A rate that is left out, is out of bounds, or is no number counts as not known.
[[nodiscard]] PathRates rates_from(const nlohmann::json& group);
[[nodiscard]] nlohmann::json rates_to_json(const PathRates& rates);

}  // namespace tributary::manager
