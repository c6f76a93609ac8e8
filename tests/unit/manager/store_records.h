#pragma once
// Records that differ in every field.
#include "tree-manager/store/store.h"

namespace tributary::manager {

[[nodiscard]] AggregatorRecord aggregator_record(const std::string& name, std::uint64_t incarnation);
[[nodiscard]] GroupRecord group_record(std::uint64_t id, std::uint32_t epoch);

}  // namespace tributary::manager
