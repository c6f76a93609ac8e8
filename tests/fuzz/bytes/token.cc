// A chain of tokens, as in a join. The code reads claims before it checks their signature, and uses them only after the
// check.
#include <array>
#include <cstdlib>
#include <span>

#include "tributary/protocol/credential.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto key = tributary::SigningKey::from_seed(std::array<std::byte, tributary::kPrivateKeyBytes>{});
  static const auto verifier = tributary::TokenVerifier::create(key->public_key());
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto chain = tributary::decode_token_chain(bytes)) {
    if (chain->empty() || tributary::encode(*chain).size() != size) std::abort();
    for (const tributary::Token& token : *chain) {
      const auto claims = verifier->verify(token, 1'700'000'000);
      // If claims verify, the key has signed them, so it can sign them again.
      if (claims && !key->sign(*claims)) std::abort();
    }
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto decoded = tributary::from_base64(text)) {
    if (decoded->size() > size) std::abort();
  }
  return 0;
}
