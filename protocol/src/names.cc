#include "protocol/src/names.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "protocol/src/openssl_key.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/credential.h"

namespace tributary {
namespace {

using openssl::bytes_of;

constexpr std::size_t kTenantHeadBytes = 15;  // bytes of a long tenant's name that stay readable
constexpr std::size_t kTenantDigitBytes = 4;  // bytes of its hash: 8 hexadecimal digits
static_assert(kTenantHeadBytes + 1 + 2 * kTenantDigitBytes == kTokenTenantBytesMax);

}  // namespace

std::string_view cut(std::string_view text, std::size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

std::string tenant_in_token(std::string_view name) {
  if (name.empty() || (name.size() <= kTokenTenantBytesMax && is_name(name))) return std::string(name);
  std::array<std::byte, 32> hash{};
  const auto bytes = std::as_bytes(std::span(name));
  const bool hashed =
      EVP_Digest(bytes_of(bytes.data()), bytes.size(), bytes_of(hash.data()), nullptr, EVP_sha256(), nullptr) == 1;
  TRIBUTARY_ASSERT(hashed, "OpenSSL has no SHA-256 for a tenant's name of {} bytes", name.size());
  std::string text(cut(name, kTenantHeadBytes));
  std::ranges::replace_if(text, [](char c) { return !is_name({&c, 1}); }, '_');
  return text + '~' + to_hex(std::span(hash).first(kTenantDigitBytes));
}

bool is_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kNameBytesMax &&
         std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; });
}

}  // namespace tributary
