#pragma once
// The commands and events by which the user's thread and an I/O thread work on one channel.
//
//   user's thread: UserEnd  ---- Command ---->  I/O thread: IoEnd, the inner transport's handler
//                           <---- Event ------
//
// A command names the IoEnd by its address. This is safe because `destroy` is the last command about it, and commands
// keep their order. An event names the UserEnd by a Key, because the user may destroy a channel while events about it
// are under way; the core ignores such events.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tributary/transport/near.h"

namespace tributary::transport::io_threads {

class IoEnd;

/// Names one use of one place in the table of UserEnds.
struct Key {
  std::uint32_t place = 0;
  std::uint32_t generation = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

/// The members that only few kinds of commands use.
struct CommandDetails {
  std::unique_ptr<IoEnd> end;        // connect, adopt: the I/O thread owns it from here on
  std::unique_ptr<HandedOver> open;  // adopt
  Endpoint to;                       // connect
  Duration limit{};                  // connect, flush
  std::vector<std::byte> bytes;      // send_copy
  std::optional<Error> error;        // reject
};

struct Command {
  enum class Kind : std::uint8_t { connect, adopt, send, send_copy, expect, place, reject, close, flush, destroy };
  Kind kind = Kind::close;
  IoEnd* end = nullptr;
  FrameHeader header{};
  std::span<const std::byte> payload{};  // send
  std::span<std::byte> place{};          // expect, place
  std::uint64_t number = 0;              // send: the cookie; close: the ticket that the I/O thread confirms
  std::unique_ptr<CommandDetails> details{};
};

/// The members that only few kinds of events use.
struct EventDetails {
  std::string peer;                    // opened
  bool shares_memory = false;          // opened
  std::optional<SealedLink> sealed{};  // opened
  std::optional<Error> error{};        // closed
};

struct Event {
  enum class Kind : std::uint8_t {
    opened,
    header,  // a frame without an announcement has come; the channel stops until a place or a reject comes
    frame,   // a frame has landed whole at the place that was given for it
    sent,
    closed,
    flushed,
  };
  Kind kind = Kind::closed;
  Key key;
  bool announced = false;  // frame: the user had announced it, and the announcement is used up
  FrameHeader header{};
  std::span<std::byte> payload{};  // frame
  std::uint64_t cookie = 0;        // sent
  std::unique_ptr<EventDetails> details{};
};

}  // namespace tributary::transport::io_threads
