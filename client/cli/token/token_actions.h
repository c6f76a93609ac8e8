#pragma once
// The subcommands of `tributary token`. Each function returns the exit code of the process.
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/manager/access.h"

namespace tributary::cli {

struct TokenWanted {
  std::string role = "tenant";
  std::string name;  // empty: use the name of the tenant
  std::string tenant;
  std::string job;                  // empty: any job
  std::vector<std::string> scopes;  // empty: all scopes of the role
  std::int64_t life_s = 0;
  std::int64_t renewable_s = 0;  // 0: the token cannot be renewed
  std::string key_file;          // sign with this key; empty: ask the manager
  std::string output;            // the file to write; empty: standard output
};
[[nodiscard]] int make_token(const ManagerOptions& options, const TokenWanted& wanted);
/// Shows a token. `token`: a token; empty: the token in options.token_file.
[[nodiscard]] int show_token(const ManagerOptions& options, const std::string& token);
/// Renews the token, and replaces the old token in its file.
[[nodiscard]] int renew_token(const ManagerOptions& options);
/// Revokes a token. `token`: a token, or its id.
[[nodiscard]] int revoke_token(const ManagerOptions& options, const std::string& token);
[[nodiscard]] int add_token_key(const std::string& key_file);

}  // namespace tributary::cli
