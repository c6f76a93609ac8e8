#pragma once
// The manager's secrets: its signing key, the aggregator token and the job token, each in a file of mode 0600 in the
// state directory, which the first start makes.
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

/// Reads the secrets, and makes secrets that do not exist. Errc::bad_config if users other than the owner can read a
/// file, or if it is no regular file or has other content; the sentence gives the remedy.
[[nodiscard]] Result<Secrets> load_or_make_secrets(const SecretPaths& paths);
/// Reads a secret that a person has put there: a text of at most 4096 bytes, without the line's end. A group may read
/// the file. Errc::bad_config as above.
[[nodiscard]] Result<std::string> read_secret(const std::string& path);
/// Checks the existing files as load_or_make_secrets() does, but makes none.
[[nodiscard]] Status check_secrets(const SecretPaths& paths);

}  // namespace tributary::manager
