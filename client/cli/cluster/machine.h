#pragma once
// What a local cluster needs of this machine: programs, ports, a folder of its own.
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// The path of one of our own programs: beside this one where it is installed, or in its place in this build directory.
/// Errc::bad_config says where it was looked for.
[[nodiscard]] Result<std::string> find_program(const std::string& name);

/// A TCP port of 127.0.0.1 that nobody listens on, below those that the system gives to outgoing connections: so it
/// stays free unless somebody asks for it by number.
[[nodiscard]] Result<std::uint16_t> free_port();

/// A new folder that only this user can read, in TMPDIR or /tmp.
[[nodiscard]] Result<std::string> make_private_folder();

/// The last lines of a file, each indented; empty when it cannot be read.
[[nodiscard]] std::string tail_of(const std::string& file, std::size_t lines = 15);

/// The IPv4 addresses of this machine's RDMA (RoCE) ports, as the kernel shows them, in the order of the devices'
/// names.
[[nodiscard]] std::vector<std::string> rdma_addresses();

}  // namespace tributary::cli
