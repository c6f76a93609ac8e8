#pragma once
// The secrets that all managers of one store must have in common: the aggregator token, the job token and the keys of
// identity tokens. They lie in the store, sealed by a key that follows from the signing key. So the signing key is the
// one file that a person copies from manager to manager, and whoever reads the store learns no secret.
#include <string>
#include <string_view>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/error.h"

namespace tributary::manager {

/// The name under which the store keeps them.
inline constexpr const char* kSharedSecretsKey = "shared_secrets";

struct SharedSecrets {
  std::string aggregator_token;
  std::string job_token;
  std::string identity_keys;  // text of the file
  friend bool operator==(const SharedSecrets&, const SharedSecrets&) = default;
};

/// Seals with AES-256-GCM, in base64. Two calls give different texts.
[[nodiscard]] Result<std::string> seal_secrets(const SigningKey& key, const SharedSecrets& secrets);
/// Errc::denied: they were sealed under another signing key. Errc::corrupt: the text was never sealed.
[[nodiscard]] Result<SharedSecrets> open_secrets(const SigningKey& key, std::string_view sealed);

}  // namespace tributary::manager
