#pragma once
// An attacker that has the secret, and reads, changes and reseals its own packets. A connection's keys follow from the
// secret and from the handshake, whose packets the attacker sees in both directions.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "transport/packet/seal.h"
#include "transport/packet/wire.h"

namespace tributary::fuzz {

class Resealing {
 public:
  explicit Resealing(std::shared_ptr<transport::LinkKeys> keys) : keys_(std::move(keys)) {}
  /// Reads the handshake in a datagram that has arrived, before any change.
  void heard(std::span<const std::byte> datagram) { note(datagram, false); }
  /// Reads the handshake in a datagram before it is sent, and decrypts the payload in place.
  void unseal(std::vector<std::byte>& datagram);
  /// Corrects length, authenticator and checksum after a change.
  void seal(std::vector<std::byte>& datagram);

 private:
  using Seal = transport::packet::Seal;
  struct Asked {
    LinkName name;
    transport::packet::SealContext context;
  };
  struct Link {
    std::unique_ptr<Seal> ours, theirs;  // the seals of the two ends
  };
  void note(std::span<const std::byte> datagram, bool ours);
  [[nodiscard]] Link* link_of(std::uint64_t connection);

  std::shared_ptr<transport::LinkKeys> keys_;
  std::map<std::uint64_t, Asked> asked_;  // by the client's name of the connection
  std::map<std::uint64_t, Link> links_;   // by the other side's name of the connection
};

}  // namespace tributary::fuzz
