#pragma once
// The manager's secrets: its signing key, the aggregator token and the job token, each a file of mode 0600 in the state
// directory, made at the first start.
#include <string>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/error.h"

namespace tributary::manager {

struct SecretPaths {
  std::string signing_key;       // 64 hexadecimal digits: the Ed25519 seed
  std::string aggregator_token;  // aggregators register with it
  std::string job_token;         // jobs ask for groups with it
};

struct Secrets {
  SigningKey key;
  std::string aggregator_token;
  std::string job_token;
};

/// Reads the secrets, and makes those that do not exist. Errc::bad_config when others than the owner can read a file,
/// or when it is no regular file or holds something else: the sentence says how to mend it.
[[nodiscard]] Result<Secrets> load_or_make_secrets(const SecretPaths& paths);
/// Checks the files that exist, as load_or_make_secrets() does, and makes none.
[[nodiscard]] Status check_secrets(const SecretPaths& paths);

}  // namespace tributary::manager
