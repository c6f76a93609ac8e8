#pragma once
// One key of AES-128-GCM (NIST SP 800-38D) for one direction. pass() encrypts and authenticates its bytes, and cover()
// only authenticates (alone, this is GMAC). The caller never uses a number twice for sealing.
#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tributary::transport {

class AeadKey {
 public:
  static constexpr std::size_t kTagBytes = 16;
  static constexpr std::size_t kMaterialBytes = 28;  // the key, and the bytes that make nonces of numbers
  using Tag = std::span<std::byte, kTagBytes>;

  /// Sets the key, for sealing or for opening. Allocates on the first call. False: OpenSSL does not take it.
  [[nodiscard]] bool set(std::span<const std::byte, kMaterialBytes> material, bool sealing) noexcept;
  /// Begins the message with this number.
  [[nodiscard]] bool begin(std::uint64_t number) noexcept;
  /// Authenticates bytes. All calls come before the first pass().
  [[nodiscard]] bool cover(std::span<const std::byte> bytes) noexcept;
  /// Authenticates bytes, and encrypts or decrypts them into `out`: the same place, or one that does not overlap.
  [[nodiscard]] bool pass(std::span<const std::byte> bytes, std::byte* out) noexcept;
  /// Ends a message that is sealed.
  [[nodiscard]] bool end(Tag tag) noexcept;
  /// Ends a message that is opened. False: the message is not authentic, and no byte that passed may be used.
  [[nodiscard]] bool matches(Tag tag) noexcept;

 private:
  struct ContextFree {
    void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
  };
  static constexpr std::size_t kIvBytes = 12;

  [[nodiscard]] bool update(std::span<const std::byte> bytes, std::byte* out) noexcept;

  std::unique_ptr<EVP_CIPHER_CTX, ContextFree> context_;
  std::array<std::byte, kIvBytes> iv_{};
};

}  // namespace tributary::transport
