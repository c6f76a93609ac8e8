#include "transport/verbs/proof.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace tributary::transport::verbs {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text));
}

/// Returns the address in IPv6 form, without the port, which the system may have chosen.
std::array<std::byte, 16> address_in(const sockaddr& address) noexcept {
  std::array<std::byte, 16> bytes{};
  if (address.sa_family == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, bytes.size());
  } else if (address.sa_family == AF_INET) {
    bytes[10] = bytes[11] = std::byte{0xFF};
    std::memcpy(&bytes[12], &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  }
  return bytes;
}

Proof proof(const LinkSecret& secret, std::string_view purpose, Greeting greeting,
            std::span<const std::byte> context) noexcept {
  greeting.proof = {};
  std::array<std::byte, sizeof(Greeting) + 16> message{};
  std::memcpy(message.data(), &greeting, sizeof greeting);
  std::memcpy(message.data() + sizeof greeting, context.data(), std::min<std::size_t>(context.size(), 16));
  const Digest key = hkdf_expand(secret, bytes_of(purpose));
  const Digest digest = hmac_sha256(key, message);
  Proof out;
  std::memcpy(out.data(), digest.data(), out.size());
  return out;
}

}  // namespace

Proof proof_of_request(const LinkSecret& secret, const Greeting& request, const sockaddr& from) noexcept {
  return proof(secret, "tributary rdma request", request, address_in(from));
}

Proof proof_of_answer(const LinkSecret& secret, const Greeting& answer, const Proof& request) noexcept {
  return proof(secret, "tributary rdma answer", answer, std::as_bytes(std::span(request)));
}

bool same_proof(const Proof& a, const Proof& b) noexcept {
  return same_bytes(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

LinkName claim_of(const Greeting& request) noexcept {
  return {request.group, request.epoch, request.lane, request.child};
}

}  // namespace tributary::transport::verbs
