#pragma once
// Connects the listings to the manager, and reports errors of this connection.
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/cli/terminal/output_form.h"
#include "service-kit/tls/tls_context.h"
#include "tributary/manager_client/manager_client.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

struct ManagerOptions {
  std::string url;         // empty: use TRIBUTARY_MANAGER
  std::string token_file;  // empty: use TRIBUTARY_TOKEN_FILE; if this is not set either, send no token
  OutputForm form = OutputForm::table;
  double seconds_max = 10;
  double watch_seconds = 0;  // show the state again after this time, without end; 0: show it once
};

/// Returns the files that the variables TRIBUTARY_TLS_... name.
[[nodiscard]] service::TlsFiles tls_files();

/// Makes a client of the manager. Errc::bad_config: no manager is given, the text is no URL, or the token file cannot
/// be read.
[[nodiscard]] Result<manager_client::ManagerClient> connect(const ManagerOptions& options);

/// Return the URL and the token file that connect() uses.
[[nodiscard]] std::string manager_url(const ManagerOptions& options);
[[nodiscard]] std::string token_file(const ManagerOptions& options);
/// Returns the token that connect() uses; empty: none.
[[nodiscard]] Result<std::string> shown_token(const ManagerOptions& options);

/// The function that writes a document as a table.
struct TableStyle {
  bool wide = false;
  bool colour = false;
};

/// Gets a document and prints it: unchanged, or in the form that `table` makes. If options.watch_seconds is set, it
/// repeats this without end, also if the manager is away for some time. Returns the exit code of the process.
using GetDocument = std::function<Result<nlohmann::json>(manager_client::ManagerClient&)>;
using ShowDocument = std::function<std::string(const nlohmann::json&, const TableStyle&)>;
[[nodiscard]] int show(const ManagerOptions& options, const GetDocument& get, const ShowDocument& table);
/// Prints an error, and returns the exit code of the process.
[[nodiscard]] int complain_of(const Error& error);

}  // namespace tributary::cli
