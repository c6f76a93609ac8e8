#include "client/cli/manager/access.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/cli/terminal/exit_code.h"
#include "service-kit/variables.h"

namespace tributary::cli {
namespace {

using manager_client::ManagerClient;

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
                                    " cannot be read, or is empty; it must hold one of the "
                                    "manager's tokens (job.token or aggregator.token in its state directory)");
}

int complain(const Error& error) {
  std::fprintf(stderr, "tributary: %s\n", error.message.c_str());
  return exit_code_of(error.code);
}

}  // namespace

std::string manager_url(const ManagerOptions& options) {
  return or_variable(options.url, "TRIBUTARY_MANAGER");
}

Result<ManagerClient> connect(const ManagerOptions& options) {
  const std::string url = manager_url(options);
  if (url.empty()) {
    return fail(Errc::bad_config, "no manager is given: use --manager http://HOST:7470, or set TRIBUTARY_MANAGER");
  }
  auto token = read_token(or_variable(options.token_file, "TRIBUTARY_TOKEN_FILE"));
  if (!token) return std::unexpected(token.error());
  const auto limit = std::chrono::milliseconds(static_cast<std::int64_t>(options.seconds_max * 1000));
  auto client = ManagerClient::create({.url = url,
                                       .token = std::move(*token),
                                       .connect_limit = std::min(limit, std::chrono::milliseconds(2000)),
                                       .request_limit = limit});
  if (!client) return fail(Errc::bad_config, client.error().message);
  return client;
}

int show(const ManagerOptions& options, const GetDocument& get, const ShowDocument& table) {
  for (const std::string& sentence : service::misspelt_variables())
    std::fprintf(stderr, "tributary: %s\n", sentence.c_str());
  auto client = connect(options);
  if (!client) return complain(client.error());
  try {
    const auto document = get(*client);
    if (!document) return complain(document.error());
    constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
    const std::string text = options.json ? document->dump(2, ' ', false, kReplace) + "\n" : table(*document);
    std::fputs(text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? kExitGood : kExitFailed;
  } catch (const nlohmann::json::exception& error) {
    return complain({Errc::corrupt, "the manager's answer is not what this version of tributary expects (" +
                                        std::string(error.what()) + "); install the same version of both"});
  }
}

}  // namespace tributary::cli
