#pragma once
// The secrets that all managers of one store share: the aggregator token, the job token and the keys of identity
// tokens. They are in the store, sealed with a key that is derived from the signing key. So the administrator copies
// only the signing key to each manager, and a reader of the store learns no secret.
#include <string>
#include <string_view>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/error.h"

namespace tributary::manager {

/// The key of these secrets in the store.
inline constexpr const char* kSharedSecretsKey = "shared_secrets";

struct SharedSecrets {
  std::string aggregator_token;
  std::string job_token;
  std::string identity_keys;  // text of the file
  friend bool operator==(const SharedSecrets&, const SharedSecrets&) = default;
};

/// Seals the secrets with AES-256-GCM. Returns base64; two calls return different texts.
[[nodiscard]] Result<std::string> seal_secrets(const SigningKey& key, const SharedSecrets& secrets);
/// Opens a sealed text. Errc::denied: another signing key has sealed it. Errc::corrupt: it is no sealed text.
[[nodiscard]] Result<SharedSecrets> open_secrets(const SigningKey& key, std::string_view sealed);

}  // namespace tributary::manager
