#pragma once
#include <optional>
#include <string>

#include "tree-manager/topology/topology.h"

namespace tributary::manager {

struct Unsound {
  std::string key;  // the key of the file to which the sentence belongs
  std::string why;
};

/// Returns the first thing that makes the fabric of no use: a host without a link, or switches that no links connect.
/// The switches of each rail are to be connected with one another, and rails need not be connected with rails.
[[nodiscard]] std::optional<Unsound> find_unsound(const Topology& topology);

}  // namespace tributary::manager
