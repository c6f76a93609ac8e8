#pragma once
// Finds on this machine the things that a local cluster needs: programs, a folder of its own.
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// Returns the path of one of Tributary's programs: next to this program if it is installed, or at its place in this
/// build directory. Errc::bad_config names the folders that were searched.
[[nodiscard]] Result<std::string> find_program(const std::string& name);

/// Makes a new folder in TMPDIR or /tmp that only this user can read.
[[nodiscard]] Result<std::string> make_private_folder();

/// Returns the last lines of a file, each indented; empty if the file cannot be read.
[[nodiscard]] std::string tail_of(const std::string& file, std::size_t lines = 15);

/// Returns the IPv4 addresses of this machine's RDMA (RoCE) ports, as the kernel shows them, in the order of the
/// devices' names.
[[nodiscard]] std::vector<std::string> rdma_addresses();

}  // namespace tributary::cli
