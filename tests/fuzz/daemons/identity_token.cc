// Identity tokens, the keys' file and the list of revoked tokens. If a token verifies, the key has signed it, and can
// sign it again with the same bytes.
#include <cstdlib>
#include <string>
#include <string_view>

#include "tree-manager/identity/identity_token.h"
#include "tree-manager/identity/revocations.h"

using namespace tributary::manager;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto keys = IdentityKeys::parse("a " + std::string(64, '1'));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto claims = keys->verify(text, 1'800'000'000)) {
    const auto again = keys->sign(*claims);
    if (!again || *again != text) std::abort();
  }
  if (const auto claims = read_identity_token(text)) {
    const auto again = keys->sign(*claims);  // this fails only if the key's name makes the token too long
    if (again && *read_identity_token(*again) != *claims) std::abort();
  }
  if (const auto parsed = IdentityKeys::parse(text)) {
    if (parsed->size() == 0) std::abort();
  }
  if (const auto revoked = Revocations::parse(text)) {
    if (Revocations::parse(revoked->text())->all() != revoked->all()) std::abort();
  }
  return 0;
}
