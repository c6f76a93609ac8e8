#pragma once
// The part of a VerbsConnection that seals: it greets, and seals and opens messages.
#include "transport/verbs/sealed_messages.h"
#include "transport/verbs/verbs_connection.h"

namespace tributary::transport::verbs {

class VerbsSealing {
 public:
  /// Decides whether the client's connection is sealed. False: it must be, and cannot be; then it is broken.
  [[nodiscard]] static bool begin(VerbsConnection& connection, const FrameHeader& first);
  /// True while the client must greet before its connection is open. Sends the hello, once.
  [[nodiscard]] static bool greets(VerbsConnection& connection);
  /// Takes a message that has come: the greeting, or a sealed message, which it opens.
  static void came(VerbsConnection& connection, const Came& what);
  /// Seals the message that `content` begins with. Returns its bytes with the authenticator; none if the connection is
  /// broken.
  [[nodiscard]] static std::optional<std::size_t> seal(VerbsConnection& connection, std::span<std::byte> content);
  /// Writes the next part of the frame's payload as a record. Returns the record's bytes; 0 if none fits; none if the
  /// connection is broken.
  [[nodiscard]] static std::optional<std::size_t> write_part(VerbsConnection& connection, FrameQueue::Frame& frame,
                                                             std::span<std::byte> rest);
  /// Serves a part of a payload. Returns false if reading must stop.
  [[nodiscard]] static bool serve_part(VerbsConnection& connection, std::span<const std::byte> part);

 private:
  static void take_greeting(VerbsConnection& connection, const Came& what, std::span<const std::byte> message);
  static void send_greeting(VerbsConnection& connection);
  static void distrust(VerbsConnection& connection, const char* why);
};

}  // namespace tributary::transport::verbs
