#pragma once
// The incoming frames of a connection, and the dialogue with the channel's handler about each of them. It is the same
// for every transport; the transport reads the bytes, and puts them into their place.
//
//               place(): Accept            whole: deliver()
//   +-- between frames ---------> in a frame ---------------+
//   |     |       ^                                         |
//   |     | NotYet| begin_turn(), after resume()            |
//   |     v       |                                         |
//   |    stalled --                                         |
//   +<------------------------------------------------------+
//
// NotYet means one thing: reading stops, and goes on in the first turn of the connection after resume(), where the same
// header is shown again. A resume() that is called while on_header runs counts, too.
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"

namespace tributary::transport {

/// The answer to a header that decode() refuses.
[[nodiscard]] inline Error corrupt_frame(const std::string& peer, FrameReject reject) {
  return {Errc::corrupt, peer + " sent a corrupt frame: " + std::string(to_string(reject)) + "."};
}

/// A connection that uses a FrameReader has handler(), channel() and count_callback(); serving() is false once a
/// callback has ended the connection; tell_closed(Error) ends it; make_due() asks for a turn.
class FrameReader {
 public:
  /// True since the handler said NotYet, until the first turn after resume().
  [[nodiscard]] bool stalled() const noexcept { return stalled_; }
  /// True while the payload's place is known, and on_frame has not been called.
  [[nodiscard]] bool in_frame() const noexcept { return in_frame_; }
  [[nodiscard]] const FrameHeader& header() const noexcept { return header_; }
  [[nodiscard]] std::span<std::byte> payload() const noexcept { return payload_; }

  /// Does what Channel::resume() promises. True: the caller must make the connection due.
  [[nodiscard]] bool resume() noexcept {
    resumed_ = true;
    return stalled_;
  }
  /// Called before a turn reads.
  void begin_turn() noexcept {
    if (resumed_) stalled_ = false;
  }

  /// Asks the handler where the payload goes. Returns false if no more bytes can be read now.
  template <class Connection>
  [[nodiscard]] bool place(Connection& connection, const FrameHeader& header) {
    TRIBUTARY_ASSERT(connection.handler() != nullptr && connection.channel() != nullptr,
                     "the header of frame {} is shown to nobody", header.sequence);
    TRIBUTARY_ASSERT(!in_frame_, "a header comes with {} of {} payload bytes missing", rest().size(), payload_.size());
    TRIBUTARY_ASSERT(!stalled_, "the header of frame {} is shown to a handler that does not want it", header.sequence);
    resumed_ = false;
    connection.count_callback();
    Placement placement = connection.handler()->on_header(*connection.channel(), header);
    if (!connection.serving()) return false;
    if (auto* const reject = std::get_if<Reject>(&placement)) {
      connection.tell_closed(std::move(reject->error));
      return false;
    }
    if (std::holds_alternative<NotYet>(placement)) {
      stalled_ = true;
      if (resumed_) connection.make_due();
      return false;
    }
    const std::span<std::byte> place = std::get<Accept>(placement).payload;
    if (place.size() != header.payload_bytes)
      throw std::logic_error("on_header accepted a payload at a place of another length");
    begin(header, place);
    return true;
  }
  /// The whole payload lies where the other side wrote it, and the handler takes it there. on_frame gives every payload
  /// as writable bytes; a handler that takes a payload in place must not write to it.
  void take(const FrameHeader& header, std::span<const std::byte> payload) noexcept {
    TRIBUTARY_ASSERT(!in_frame_, "a payload is taken in place with {} bytes of another missing", rest().size());
    TRIBUTARY_ASSERT(payload.size() == header.payload_bytes, "{} bytes are taken in place for a payload of {}",
                     payload.size(), header.payload_bytes);
    begin(header, {const_cast<std::byte*>(payload.data()), payload.size()});
    landed_ = payload.size();
  }

  // ---- Calls while a frame is being read
  /// The part of the payload that is missing.
  [[nodiscard]] std::span<std::byte> rest() const noexcept { return payload_.subspan(landed_); }
  /// Notes that `bytes` more bytes of the payload are there.
  void land(std::size_t bytes) noexcept {
    TRIBUTARY_ASSERT(in_frame_ && bytes <= payload_.size() - landed_, "{} bytes land where {} of {} are missing", bytes,
                     payload_.size() - landed_, payload_.size());
    landed_ += bytes;
  }
  [[nodiscard]] bool whole() const noexcept { return landed_ == payload_.size(); }
  /// Hands the frame over. Returns false if no more bytes can be read now.
  template <class Connection>
  [[nodiscard]] bool deliver(Connection& connection) {
    TRIBUTARY_ASSERT(in_frame_ && whole(), "a frame is handed over with {} of its {} bytes", landed_, payload_.size());
    in_frame_ = false;
    connection.count_callback();
    connection.handler()->on_frame(*connection.channel(), header_, payload_);
    return connection.serving();
  }

  /// Forgets the frame, because its rest will not come.
  void drop_frame() noexcept { in_frame_ = false; }
  /// Forgets all state: the handler is gone, and no frame is shown any more.
  void forget() noexcept { stalled_ = in_frame_ = false; }

 private:
  void begin(const FrameHeader& header, std::span<std::byte> payload) noexcept {
    header_ = header;
    payload_ = payload;
    landed_ = 0;
    in_frame_ = true;
  }

  bool stalled_ = false;
  bool resumed_ = false;  // resume() came since the last header was shown
  bool in_frame_ = false;
  FrameHeader header_;
  std::span<std::byte> payload_;
  std::size_t landed_ = 0;
};

}  // namespace tributary::transport
