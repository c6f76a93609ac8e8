#include "tree-manager/replicas/shared_secrets.h"

#include <openssl/evp.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "tributary/protocol/json_reader.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

constexpr std::string_view kPurpose = "tributary shared secrets 1";
constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kSealedBytesMax = 1U << 20;

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

Digest sealing_key(const SigningKey& key) {
  return hmac_sha256(key.seed(), std::as_bytes(std::span(kPurpose)));
}

unsigned char* raw(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}
const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

std::unexpected<Error> no_seal() {
  return fail(Errc::corrupt, "the store's shared secrets cannot be read: they are no sealed text");
}

}  // namespace

Result<std::string> seal_secrets(const SigningKey& key, const SharedSecrets& secrets) {
  const std::string text = json{
      {"aggregator_token", secrets.aggregator_token},
      {"job_token", secrets.job_token},
      {"identity_keys",
       secrets.identity_keys}}.dump(-1, ' ', false, json::error_handler_t::replace);
  std::vector<std::byte> sealed(kNonceBytes + text.size() + kTagBytes);
  const Digest secret = sealing_key(key);
  const Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int written = 0;
  std::byte* const body = sealed.data() + kNonceBytes;
  const bool good =
      context && random_bytes(std::span(sealed).first(kNonceBytes)) &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, raw(secret.data()), raw(sealed.data())) == 1 &&
      EVP_EncryptUpdate(context.get(), raw(body), &written, reinterpret_cast<const unsigned char*>(text.data()),
                        static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), raw(body) + written, &written) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, body + text.size()) == 1;
  if (!good) return fail(Errc::io, "OpenSSL could not seal the shared secrets");
  return to_base64(sealed);
}

Result<SharedSecrets> open_secrets(const SigningKey& key, std::string_view sealed) {
  auto bytes = from_base64(sealed);
  if (!bytes || bytes->size() < kNonceBytes + kTagBytes || bytes->size() > kSealedBytesMax) return no_seal();
  const std::size_t length = bytes->size() - kNonceBytes - kTagBytes;
  std::string text(length, '\0');
  const Digest secret = sealing_key(key);
  const Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int written = 0;
  std::byte* const body = bytes->data() + kNonceBytes;
  auto* const out = reinterpret_cast<unsigned char*>(text.data());
  const bool good =
      context &&
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, raw(secret.data()), raw(bytes->data())) == 1 &&
      EVP_DecryptUpdate(context.get(), out, &written, raw(body), static_cast<int>(length)) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, body + length) == 1 &&
      EVP_DecryptFinal_ex(context.get(), out + written, &written) == 1;
  if (!good) {
    return fail(
        Errc::denied,
        "the managers of this store have another signing.key than this manager; copy signing.key from the state "
        "directory of another manager into its own, and start it again, or send SIGHUP to it if it still runs");
  }
  const json from = json_or_discarded(text);
  const auto member = [&from](const char* name) {
    const auto found = from.is_object() ? from.find(name) : from.end();
    return from.is_object() && found != from.end() && found->is_string() ? found->get<std::string>() : std::string{};
  };
  return SharedSecrets{.aggregator_token = member("aggregator_token"),
                       .job_token = member("job_token"),
                       .identity_keys = member("identity_keys")};
}

}  // namespace tributary::manager
