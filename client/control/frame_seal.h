#pragma once
// Seals the frames of a control connection once both sides have proved themselves (mutual_proof.h): nobody in between
// can read a body, or make, change, repeat, leave out or reorder a frame.
//
// ChaCha20-Poly1305 (RFC 8439) under one key a direction; the nonce is the frame's number in its direction. The body
// keeps its length. The tag of 16 bytes stands in the header's `group` and `sequence`, which have no other use on these
// connections; the other fields of the header are authenticated, too.
#include <cstddef>
#include <cstdint>
#include <span>

#include "client/control/unique_id.h"
#include "tributary/protocol/frame.h"

namespace tributary::client {

/// One direction of one connection.
class FrameSeal {
 public:
  explicit FrameSeal(const Secret& key) : key_(key) {}
  /// The next frame to send: `body` becomes what travels, the tag goes into the header.
  void seal(FrameHeader& header, std::span<std::byte> body);
  /// The next frame that has come. False: it is not that frame as it was sent; nothing that comes after it is, either.
  [[nodiscard]] bool open(FrameHeader& header, std::span<std::byte> body) noexcept;

 private:
  const Secret key_;
  std::uint64_t number_ = 0;
  bool broken_ = false;
};

}  // namespace tributary::client
