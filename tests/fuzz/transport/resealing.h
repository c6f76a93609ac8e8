#pragma once
// What somebody who has the secret can do with his own sealed packets: read them, change them, seal them again. The
// keys of a connection follow from the secret and from what its handshake says, which is watched in both directions.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "packet/seal.h"
#include "packet/wire.h"

namespace tributary::fuzz {

class Resealing {
 public:
  explicit Resealing(std::shared_ptr<transport::LinkKeys> keys) : keys_(std::move(keys)) {}
  /// A datagram that has come, as it came.
  void heard(std::span<const std::byte> datagram) { note(datagram, false); }
  /// One that is about to go: its payload can be read behind this.
  void unseal(std::vector<std::byte>& datagram);
  /// After a change: length, authenticator and checksum are made right.
  void seal(std::vector<std::byte>& datagram);

 private:
  using Seal = transport::packet::Seal;
  struct Asked {
    LinkName name;
    transport::packet::SealContext context;
  };
  struct Link {
    std::unique_ptr<Seal> ours, theirs;  // how the two ends see it
  };
  void note(std::span<const std::byte> datagram, bool ours);
  [[nodiscard]] Link* link_of(std::uint64_t connection);

  std::shared_ptr<transport::LinkKeys> keys_;
  std::map<std::uint64_t, Asked> asked_;  // by the client's name for the connection
  std::map<std::uint64_t, Link> links_;   // by the other side's name for it
};

}  // namespace tributary::fuzz
