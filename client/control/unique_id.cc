#include "client/control/unique_id.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/frame.h"

namespace tributary::client {
namespace {
// The first bytes of an id. The last of these bytes is the protocol's version as a digit.
constexpr char kMagic[8] = {'T', 'R', 'I', 'B', 'U', 'I', 'D', '0' + kProtocolVersion};
constexpr std::size_t kHostBytesMax = 80;
// The fields use 124 of 128 bytes: magic 8, port 2, host length 1, zero 1, secret 32, host 80.
static_assert(12 + kSecretBytes + kHostBytesMax <= std::tuple_size_v<UniqueIdBytes>);
}  // namespace

Result<Secret> random_secret() {
  Secret secret;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()), static_cast<int>(secret.size())) != 1) {
    return fail(Errc::io, "the system has no random bytes to give");
  }
  return secret;
}

Result<UniqueIdBytes> encode(const UniqueId& id) {
  if (id.root.host.empty() || id.root.host.size() > kHostBytesMax) {
    return fail(Errc::bad_argument, "the address '" + id.root.host + "' is too long for a unique id; at most " +
                                        std::to_string(kHostBytesMax) + " bytes fit");
  }
  UniqueIdBytes bytes{};
  std::memcpy(bytes.data(), kMagic, sizeof kMagic);
  std::memcpy(bytes.data() + 8, &id.root.port, 2);
  bytes[10] = static_cast<unsigned char>(id.root.host.size());
  std::memcpy(bytes.data() + 12, id.secret.data(), kSecretBytes);
  std::memcpy(bytes.data() + 12 + kSecretBytes, id.root.host.data(), id.root.host.size());
  return bytes;
}

Result<UniqueId> decode_unique_id(const UniqueIdBytes& bytes) {
  const std::size_t host_bytes = bytes[10];
  const char version = static_cast<char>(bytes[sizeof kMagic - 1]);
  const bool other = std::memcmp(bytes.data(), kMagic, sizeof kMagic - 1) == 0 && version != kMagic[sizeof kMagic - 1];
  if (other && version >= '0' && version <= '9') {
    return fail(Errc::bad_argument, std::string("this unique id was made by another version of Tributary, which speaks "
                                                "protocol version ") +
                                        version + "; this process speaks version " + std::to_string(kProtocolVersion) +
                                        ": all ranks must load the same version of libtributary");
  }
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0 || host_bytes == 0 || host_bytes > kHostBytesMax) {
    return fail(Errc::bad_argument,
                "these 128 bytes are no unique id: get one with tributary_get_unique_id in rank 0's process and carry "
                "it to every rank unchanged");
  }
  UniqueId id;
  std::memcpy(&id.root.port, bytes.data() + 8, 2);
  std::memcpy(id.secret.data(), bytes.data() + 12, kSecretBytes);
  id.root.host.assign(reinterpret_cast<const char*>(bytes.data()) + 12 + kSecretBytes, host_bytes);
  return id;
}

namespace {

Secret keyed_hash(const Secret& secret, std::string_view nonce, std::string_view purpose, std::uint32_t number) {
  const std::string text = std::string(nonce) + "|" + std::string(purpose) + "|" + std::to_string(number);
  Secret digest{};  // has the length of the hash
  unsigned int bytes = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(digest.data()), &bytes);
  TRIBUTARY_ASSERT(bytes == digest.size(), "a keyed hash of {} bytes, where {} are wanted", bytes, digest.size());
  return digest;
}

}  // namespace

std::string proof(const Secret& secret, std::string_view nonce, std::string_view purpose, std::uint32_t rank) {
  return to_hex(keyed_hash(secret, nonce, purpose, rank));
}

// Uses a purpose that no proof has, so no proof that travels over a network equals a derived secret.
Secret derived(const Secret& secret, std::string_view purpose, std::uint32_t number) {
  return keyed_hash(secret, "", "secret of " + std::string(purpose), number);
}

LinkSecret link_secret_of_peers(const Secret& secret) {
  constexpr std::string_view kPurpose = "tributary packets between ranks";
  const Digest digest = hmac_sha256(secret, std::as_bytes(std::span(kPurpose)));
  LinkSecret link;
  std::copy_n(digest.begin(), link.size(), link.begin());
  return link;
}

Result<ExchangeKey> exchange_key_of_group(const Secret& secret) {
  return exchange_key_of(secret, "tributary group exchange");
}

bool same_proof(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tributary::client
