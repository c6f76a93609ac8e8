#pragma once
// Connects the listings to the manager, and reports when that fails.
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/cli/terminal/output_form.h"
#include "tributary/manager_client/manager_client.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

struct ManagerOptions {
  std::string url;         // empty: TRIBUTARY_MANAGER
  std::string token_file;  // empty: TRIBUTARY_TOKEN_FILE; if that is not set either, no token is sent
  OutputForm form = OutputForm::table;
  double seconds_max = 10;
  double watch_seconds = 0;  // shows the state again after this time, for ever; 0: shows it once
};

/// Errc::bad_config: no manager is given, the text is no URL, or the token file cannot be read.
[[nodiscard]] Result<manager_client::ManagerClient> connect(const ManagerOptions& options);

/// The URL and the file that connect() uses.
[[nodiscard]] std::string manager_url(const ManagerOptions& options);
[[nodiscard]] std::string token_file(const ManagerOptions& options);
/// The token that connect() shows; empty: none.
[[nodiscard]] Result<std::string> shown_token(const ManagerOptions& options);

/// How `table` writes its text.
struct TableStyle {
  bool wide = false;
  bool colour = false;
};

/// Gets a document and prints it: as it came, or in the form that `table` makes. Where options.watch_seconds is set, it
/// does so again and again, and goes on when the manager is away for a while. Returns the exit code of the process.
using GetDocument = std::function<Result<nlohmann::json>(manager_client::ManagerClient&)>;
using ShowDocument = std::function<std::string(const nlohmann::json&, const TableStyle&)>;
[[nodiscard]] int show(const ManagerOptions& options, const GetDocument& get, const ShowDocument& table);
/// Prints an error, and returns the exit code of the process.
[[nodiscard]] int complain_of(const Error& error);

}  // namespace tributary::cli
