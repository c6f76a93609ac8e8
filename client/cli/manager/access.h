#pragma once
// Connects the listings to the manager, and reports when that fails.
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tributary/manager_client/manager_client.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

struct ManagerOptions {
  std::string url;         // empty: TRIBUTARY_MANAGER
  std::string token_file;  // empty: TRIBUTARY_TOKEN_FILE; if that is not set either, no token is sent
  bool json = false;
  double seconds_max = 10;
};

/// Errc::bad_config: no manager is given, the text is no URL, or the token file cannot be read.
[[nodiscard]] Result<manager_client::ManagerClient> connect(const ManagerOptions& options);

/// The URL that connect() uses.
[[nodiscard]] std::string manager_url(const ManagerOptions& options);

/// Gets a document and prints it: as it came, or in the form that `table` makes. Returns the exit code of the process.
using GetDocument = std::function<Result<nlohmann::json>(manager_client::ManagerClient&)>;
using ShowDocument = std::function<std::string(const nlohmann::json&)>;
[[nodiscard]] int show(const ManagerOptions& options, const GetDocument& get, const ShowDocument& table);

}  // namespace tributary::cli
