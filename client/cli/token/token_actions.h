#pragma once
// Does what the subcommands of `tributary token` say. Each function returns the exit code of the process.
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/manager/access.h"

namespace tributary::cli {

struct TokenWanted {
  std::string role = "tenant";
  std::string name;  // empty: the name of the tenant
  std::string tenant;
  std::string job;                  // empty: any
  std::vector<std::string> scopes;  // empty: all scopes of the role
  std::int64_t life_s = 0;
  std::int64_t renewable_s = 0;  // 0: no renewal
  std::string key_file;          // signs here; empty: asks the manager
  std::string output;            // file to write; empty: standard output
};
[[nodiscard]] int make_token(const ManagerOptions& options, const TokenWanted& wanted);
/// `token` is a token; empty: the token in options.token_file.
[[nodiscard]] int show_token(const ManagerOptions& options, const std::string& token);
/// Writes the new token over the old one in its file.
[[nodiscard]] int renew_token(const ManagerOptions& options);
/// `token` is a token, or its id.
[[nodiscard]] int revoke_token(const ManagerOptions& options, const std::string& token);
[[nodiscard]] int add_token_key(const std::string& key_file);

}  // namespace tributary::cli
