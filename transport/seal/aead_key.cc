#include "transport/seal/aead_key.h"

#include <algorithm>
#include <stdexcept>

#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

constexpr std::size_t kKeyBytes = 16;

unsigned char* bytes_of(std::byte* p) noexcept {
  return reinterpret_cast<unsigned char*>(p);
}
const unsigned char* bytes_of(const std::byte* p) noexcept {
  return reinterpret_cast<const unsigned char*>(p);
}

/// Fetches the cipher once; otherwise OpenSSL would fetch it for each key.
const EVP_CIPHER* cipher() {
  static const EVP_CIPHER* const one = EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr);
  if (one == nullptr) throw std::runtime_error("OpenSSL has no AES-128-GCM: its default provider is not loaded");
  return one;
}

}  // namespace

bool AeadKey::set(std::span<const std::byte, kMaterialBytes> material, bool sealing) noexcept {
  if (!context_) context_.reset(EVP_CIPHER_CTX_new());
  std::copy_n(material.begin() + kKeyBytes, kIvBytes, iv_.begin());
  return context_ && EVP_CipherInit_ex2(context_.get(), cipher(), bytes_of(material.data()), bytes_of(iv_.data()),
                                        sealing ? 1 : 0, nullptr) == 1;
}

bool AeadKey::begin(std::uint64_t number) noexcept {
  TRIBUTARY_ASSERT(context_ != nullptr, "message {} begins, and no key is set", number);
  std::array<std::byte, kIvBytes> nonce = iv_;
  for (std::size_t i = 0; i < sizeof number; ++i) nonce[4 + i] ^= static_cast<std::byte>(number >> (8 * i) & 0xFF);
  return EVP_CipherInit_ex2(context_.get(), nullptr, nullptr, bytes_of(nonce.data()), -1, nullptr) == 1;
}

bool AeadKey::update(std::span<const std::byte> bytes, std::byte* out) noexcept {
  int written = 0;
  return bytes.empty() || EVP_CipherUpdate(context_.get(), out == nullptr ? nullptr : bytes_of(out), &written,
                                           bytes_of(bytes.data()), static_cast<int>(bytes.size())) == 1;
}

bool AeadKey::cover(std::span<const std::byte> bytes) noexcept {
  return update(bytes, nullptr);
}

bool AeadKey::pass(std::span<const std::byte> bytes, std::byte* out) noexcept {
  TRIBUTARY_ASSERT(bytes.empty() || out != nullptr, "{} bytes pass to nowhere", bytes.size());
  return update(bytes, out);
}

bool AeadKey::end(Tag tag) noexcept {
  int written = 0;
  std::array<unsigned char, kTagBytes> last;
  return EVP_CipherFinal_ex(context_.get(), last.data(), &written) == 1 &&
         EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(kTagBytes), tag.data()) == 1;
}

bool AeadKey::matches(Tag tag) noexcept {
  int written = 0;
  std::array<unsigned char, kTagBytes> last;
  return EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(kTagBytes), tag.data()) == 1 &&
         EVP_CipherFinal_ex(context_.get(), last.data(), &written) == 1;
}

}  // namespace tributary::transport
