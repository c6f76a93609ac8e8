#include "client/control/frame_seal.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace tributary::client {
namespace {

constexpr std::size_t kTagBytes = 16;
static_assert(offsetof(FrameHeader, sequence) == offsetof(FrameHeader, group) + 8 &&
              sizeof(FrameHeader::group) + sizeof(FrameHeader::sequence) == kTagBytes);

using Tag = std::array<unsigned char, kTagBytes>;
struct ContextFree {
  void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};

/// Returns the authenticated part of a header: all fields of a frame with a body of `length` bytes, without the tag and
/// without the checksum, which belongs to the transport.
FrameBytes authenticated(FrameHeader header, std::size_t length) noexcept {
  header.group = header.sequence = 0;
  header.checksum = 0;
  header.payload_bytes = static_cast<std::uint32_t>(length);
  FrameBytes bytes{};
  encode(header, bytes);
  return bytes;
}

unsigned char* raw(std::span<std::byte> bytes) noexcept {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

/// Seals if `seals` is true, else opens. Returns false if the library failed, or the tag is wrong.
bool run(bool seals, const Secret& key, std::uint64_t number, const FrameBytes& header, std::span<std::byte> body,
         Tag& tag) noexcept {
  const std::unique_ptr<EVP_CIPHER_CTX, ContextFree> context(EVP_CIPHER_CTX_new());
  std::array<unsigned char, 12> nonce{};
  std::memcpy(nonce.data() + 4, &number, sizeof number);
  int length = 0;
  if (!context ||
      EVP_CipherInit_ex(context.get(), EVP_chacha20_poly1305(), nullptr,
                        reinterpret_cast<const unsigned char*>(key.data()), nonce.data(), seals ? 1 : 0) != 1 ||
      EVP_CipherUpdate(context.get(), nullptr, &length, reinterpret_cast<const unsigned char*>(header.data()),
                       static_cast<int>(header.size())) != 1)
    return false;
  if (!seals && EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) != 1) return false;
  if (!body.empty() &&
      EVP_CipherUpdate(context.get(), raw(body), &length, raw(body), static_cast<int>(body.size())) != 1)
    return false;
  std::array<unsigned char, kTagBytes> rest{};
  if (EVP_CipherFinal_ex(context.get(), rest.data(), &length) != 1) return false;
  return !seals || EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1;
}

}  // namespace

void FrameSeal::seal(FrameHeader& header, std::span<std::byte> body) {
  Tag tag{};
  if (!run(true, key_, number_++, authenticated(header, body.size()), body, tag))
    throw std::runtime_error("OpenSSL cannot seal a control message: ChaCha20-Poly1305 is not available");
  std::memcpy(&header.group, tag.data(), sizeof header.group);
  std::memcpy(&header.sequence, tag.data() + sizeof header.group, sizeof header.sequence);
}

bool FrameSeal::open(FrameHeader& header, std::span<std::byte> body) noexcept {
  if (broken_) return false;
  Tag tag{};
  std::memcpy(tag.data(), &header.group, sizeof header.group);
  std::memcpy(tag.data() + sizeof header.group, &header.sequence, sizeof header.sequence);
  broken_ = !run(false, key_, number_++, authenticated(header, body.size()), body, tag);
  header.group = header.sequence = 0;
  return !broken_;
}

}  // namespace tributary::client
