#pragma once
#include <optional>
#include <string>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {

struct Unsound {
  std::string key;  // the key in the file to which the sentence belongs
  std::string why;
};

/// Returns the first mistake that makes the fabric unusable: a host without a link, or switches that no links connect.
/// The switches of each rail must be connected; different rails need not be connected.
[[nodiscard]] std::optional<Unsound> find_unsound(const Topology& topology);

}  // namespace tributary::manager
