#pragma once
// Shows a topology, and compares two topologies. Each command returns the exit code of the process.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/manager/access.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

enum class TopologyForm : std::uint8_t { table, json, yaml };
[[nodiscard]] std::optional<TopologyForm> topology_form_of(std::string_view text);

/// Prints the error, and returns its exit code.
[[nodiscard]] int topology_error(const Error& error);

/// Returns the whole text of a file, or of standard input for "-".
[[nodiscard]] Result<std::string> read_topology_text(const std::string& file);

/// Shows a topology. `file`: a topology file; empty: the manager's topology in use.
[[nodiscard]] int show_topology(const ManagerOptions& options, const std::string& file, TopologyForm form);
/// Compares two files, or the topology in use with one file. Returns 0 if they are equal, 1 if they differ, and 2 or
/// more for an error.
[[nodiscard]] int compare_topologies(const ManagerOptions& options, const std::vector<std::string>& files);

}  // namespace tributary::cli
