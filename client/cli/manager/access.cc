#include "client/cli/manager/access.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/cli/terminal/colour.h"
#include "client/cli/terminal/exit_code.h"
#include "service-kit/variables.h"

namespace tributary::cli {
namespace {

using manager_client::ManagerClient;

constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

std::string or_variable(const std::string& given, const char* variable) {
  if (!given.empty()) return given;
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string() : value;
}

Result<std::string> read_token(const std::string& file) {
  if (file.empty()) return std::string();
  std::ifstream in(file);
  std::string token;
  if (in >> token) return token;
  return fail(Errc::bad_config, "the token file " + file +
                                    " cannot be read, or is empty; it must hold a "
                                    "token of `tributary token make`, or job.token or aggregator.token of the manager");
}

bool on_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

/// Gets the document and prints it, once.
Status show_once(ManagerClient& client, const ManagerOptions& options, const GetDocument& get,
                 const ShowDocument& table) {
  try {
    const auto document = get(client);
    if (!document) return std::unexpected(document.error());
    std::string text;
    if (options.watch_seconds > 0 && on_terminal()) text = kClearScreen;
    if (is_document(options.form)) {
      text += document_text(*document, options.form);
    } else {
      text += table(*document, {.wide = options.form == OutputForm::wide, .colour = output_takes_colour()});
    }
    std::fputs(text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? Status{} : fail(Errc::io, "standard output takes no more");
  } catch (const nlohmann::json::exception& error) {
    return fail(Errc::corrupt, "the manager's answer is not what this version of tributary expects (" +
                                   std::string(error.what()) + "); install the same version of both");
  }
}

}  // namespace

service::TlsFiles tls_files() {
  return {.ca = or_variable({}, "TRIBUTARY_TLS_CA"),
          .cert = or_variable({}, "TRIBUTARY_TLS_CERT"),
          .key = or_variable({}, "TRIBUTARY_TLS_KEY"),
          .crl = or_variable({}, "TRIBUTARY_TLS_CRL")};
}

std::string manager_url(const ManagerOptions& options) {
  return or_variable(options.url, "TRIBUTARY_MANAGER");
}

std::string token_file(const ManagerOptions& options) {
  return or_variable(options.token_file, "TRIBUTARY_TOKEN_FILE");
}

Result<std::string> shown_token(const ManagerOptions& options) {
  return read_token(token_file(options));
}

Result<ManagerClient> connect(const ManagerOptions& options) {
  const std::string url = manager_url(options);
  if (url.empty()) {
    return fail(Errc::bad_config,
                "no manager is given: use --manager http://HOST:7470 (or https://), or set TRIBUTARY_MANAGER");
  }
  auto token = shown_token(options);
  if (!token) return std::unexpected(token.error());
  const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(options.seconds_max * 1000));
  auto tls = manager_client::tls_for(url, tls_files());
  if (!tls) return std::unexpected(tls.error());
  auto client = ManagerClient::create({.url = url,
                                       .token = std::move(*token),
                                       .connect_limit = std::min(limit, std::chrono::milliseconds(2000)),
                                       .request_limit = limit,
                                       .tls = std::move(*tls)});
  if (!client) return fail(Errc::bad_config, client.error().message);
  return client;
}

int complain_of(const Error& error) {
  std::fprintf(stderr, "tributary: %s\n", error.message.c_str());
  return exit_code_of(error.code);
}

int show(const ManagerOptions& options, const GetDocument& get, const ShowDocument& table) {
  for (const std::string& sentence : service::misspelt_variables())
    std::fprintf(stderr, "tributary: %s\n", sentence.c_str());
  auto client = connect(options);
  if (!client) return complain_of(client.error());
  const bool watches = options.watch_seconds > 0;
  while (true) {
    const Status shown = show_once(*client, options, get, table);
    const bool comes_back = !shown && (shown.error().code == Errc::unreachable || shown.error().code == Errc::retry);
    if (!shown && !(watches && comes_back)) return complain_of(shown.error());
    if (!shown) std::fprintf(stderr, "tributary: %s\n", shown.error().message.c_str());
    if (!watches) return kExitGood;
    if (!on_terminal()) std::fputs(options.form == OutputForm::yaml ? "---\n" : "\n", stdout);
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch_seconds));
  }
}

}  // namespace tributary::cli
