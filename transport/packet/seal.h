#pragma once
// One connection's keys, and their use for each packet: an authenticator over header and payload (AES-128-GMAC), or an
// authenticator and an encrypted payload (AES-128-GCM). NIST SP 800-38D describes both.
//
// No nonce is used twice under one key. A key belongs to one connection, direction and level. It is derived from the
// link secret, both sides' names for the connection and both sides' random numbers, so a new connection has new keys.
// Within a connection a packet's number is its nonce, and each packet has its own number. The key changes after 2^22
// packets, which is below the bound for AES-GCM in RFC 9001 (appendix B).
//
// The packets open, accept and close have no numbers: they carry 16 bytes of an HMAC-SHA256, which needs no number.
#include <array>
#include <cstdint>
#include <span>

#include "transport/packet/replay_filter.h"
#include "transport/packet/wire.h"
#include "transport/seal/aead_key.h"
#include "tributary/transport/link_keys.h"

namespace tributary::transport::packet {

using SealTag = std::array<std::byte, kSealTagBytes>;
using SealRandom = std::array<std::byte, kHandshakeRandomBytes>;

/// The authenticator of an open, which comes before the connection has keys. It covers the header without its checksum.
[[nodiscard]] SealTag open_tag(const LinkSecret& secret, std::span<const std::byte> header,
                               std::span<const std::byte> payload) noexcept;

/// The values from which both sides derive a connection's keys.
struct SealContext {
  PacketSecurity level = PacketSecurity::authenticate;
  std::uint64_t client = 0, listener = 0;  // the two sides' names for the connection
  SealRandom client_random{}, listener_random{};
};

class Seal {
 public:
  static constexpr unsigned kPhaseBits = 22;  // log2 of the packets that one key seals

  Seal(const LinkSecret& secret, const SealContext& context, bool client);
  ~Seal();
  Seal(const Seal&) = delete;
  Seal& operator=(const Seal&) = delete;

  [[nodiscard]] bool encrypts() const noexcept { return context_.level == PacketSecurity::encrypt; }
  /// Seals a packet. `head` has the header as it is sent, room for the authenticator, and the part of the payload that
  /// may be changed in place. `rest` is the other part of the payload. It is encrypted into `sealed_rest`, which has
  /// the same size, or not changed if the payload is not encrypted. A number may be sealed again only if its packet did
  /// not leave this process.
  [[nodiscard]] bool seal(std::uint64_t number, std::span<std::byte> head, std::span<const std::byte> rest,
                          std::span<std::byte> sealed_rest) noexcept;
  enum class Verdict : std::uint8_t { authentic, forged, repeated };
  /// Opens a whole datagram with this number. If the datagram is authentic, its payload can be read where it lies;
  /// otherwise no byte of it may be used.
  [[nodiscard]] Verdict open(std::uint64_t number, std::span<std::byte> datagram) noexcept;
  /// The authenticator of an accept or a close that this side (`ours`) or the other side sends.
  [[nodiscard]] SealTag control_tag(bool ours, std::span<const std::byte> header,
                                    std::span<const std::byte> payload) const noexcept;

 private:
  static constexpr std::uint64_t kNoPhase = ~std::uint64_t{0};
  /// The key of one phase of one direction, ready for use.
  struct PhaseKey {
    AeadKey aead;
    std::uint64_t phase = kNoPhase;
  };
  [[nodiscard]] Digest derive(std::string_view label, bool from_client, std::uint64_t phase) const noexcept;
  [[nodiscard]] bool set_up(PhaseKey& key, std::uint64_t phase, bool sending) const noexcept;
  [[nodiscard]] bool verify(PhaseKey& key, std::uint64_t number, std::span<std::byte> datagram) const noexcept;

  const SealContext context_;
  const bool client_;
  Digest master_{};
  Digest control_ours_{}, control_theirs_{};
  PhaseKey sending_;
  std::array<PhaseKey, 3> receiving_;  // keys of the phase of the latest authentic packet, and of the phases around it
  std::uint64_t receiving_phase_ = 0;
  ReplayFilter taken_;
};

}  // namespace tributary::transport::packet
