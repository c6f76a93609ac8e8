#pragma once
// Seals the frames of a control connection once both sides have proved themselves (mutual_proof.h): a process between
// the two sides can neither read a body, nor make, change, repeat, leave out or reorder a frame.
//
// ChaCha20-Poly1305 (RFC 8439) with one key for each direction; the nonce is the frame's number in its direction. The
// body keeps its length. The tag of 16 bytes stands in the header's fields `group` and `sequence`, which have no other
// use on these connections. The seal also authenticates the other fields of the header.
#include <cstddef>
#include <cstdint>
#include <span>

#include "client/control/unique_id.h"
#include "tributary/protocol/frame.h"

namespace tributary::client {

/// The seal of one direction of one connection.
class FrameSeal {
 public:
  explicit FrameSeal(const Secret& key) : key_(key) {}
  /// Seals the next frame to send: encrypts `body` in place, and puts the tag into the header.
  void seal(FrameHeader& header, std::span<std::byte> body);
  /// Opens the next frame that has come. Returns false if this is not the next frame of the sender, unchanged; every
  /// later frame then fails, too.
  [[nodiscard]] bool open(FrameHeader& header, std::span<std::byte> body) noexcept;

 private:
  const Secret key_;
  std::uint64_t number_ = 0;
  bool broken_ = false;
};

}  // namespace tributary::client
