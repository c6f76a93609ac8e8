#pragma once
// Owners of OpenSSL's keys and contexts (RAII), and conversions of bytes to the type that OpenSSL expects.
#include <openssl/evp.h>

#include <cstddef>
#include <memory>

namespace tributary::openssl {

struct KeyFree {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
using Key = std::unique_ptr<EVP_PKEY, KeyFree>;

struct ContextFree {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, ContextFree>;  // the state of a digest or a signature

inline const unsigned char* bytes_of(const std::byte* p) noexcept {
  return reinterpret_cast<const unsigned char*>(p);
}
inline unsigned char* bytes_of(std::byte* p) noexcept {
  return reinterpret_cast<unsigned char*>(p);
}

}  // namespace tributary::openssl
