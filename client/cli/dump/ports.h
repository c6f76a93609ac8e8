#pragma once
// Asks the status ports of this host's ranks.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::cli {

struct PortAnswer {
  std::string port;     // path of the socket
  std::string text;     // the whole answer
  std::string trouble;  // the reason why there is no answer; empty: there is one
};

/// Returns the folder of the status ports: `given`; if this is empty, the folder of TRIBUTARY_STATUS_DIR, or the user's.
[[nodiscard]] std::string status_folder(const std::string& given);
/// Returns the paths of the ports in a folder, in the order of their names. Errc::io: the folder cannot be read.
[[nodiscard]] Result<std::vector<std::string>> ports_in(const std::string& folder);
/// Sends a line to all ports at the same time, and waits for their answers at most this long.
[[nodiscard]] std::vector<PortAnswer> ask_ports(const std::vector<std::string>& ports, std::string_view line,
                                                std::chrono::milliseconds limit = std::chrono::seconds(2));

}  // namespace tributary::cli
