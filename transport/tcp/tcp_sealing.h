#pragma once
// The turns of a TcpConnection that is sealed: it greets, reads records and writes records.
#include "transport/tcp/tcp_connection.h"

namespace tributary::transport {

class TcpSealing {
 public:
  /// Begins the greeting of a client that has connected. False: the connection is not sealed.
  [[nodiscard]] static bool begin(TcpConnection& connection);
  /// Ends a connection in clear if `bytes`, which are no frame's header, show that the other side seals, or refuses to
  /// go on without a seal. False: they do not show this.
  [[nodiscard]] static bool meets_seal(TcpConnection& connection, std::span<const std::byte> bytes);
  /// A turn of a client that greets.
  static void greet(TcpConnection& connection);
  /// A turn of a listener that waits for the client's hello.
  static void write_demand(TcpConnection& connection);
  /// True while a listener waits for its manager's key, which the hello needs: nothing is read then.
  [[nodiscard]] static bool waits_for_key(const TcpConnection& connection) noexcept {
    return connection.sealed_ && connection.sealed_->waits_for_key();
  }
  /// Looks whether the key is there.
  static void look_for_key(TcpConnection& connection);
  /// Reads once, and opens the records that are whole.
  static void receive(TcpConnection& connection, std::size_t& budget);
  /// Returns false if no more bytes can be written now.
  [[nodiscard]] static bool write_some(TcpConnection& connection, std::size_t& budget);
  /// True if the system has taken all queued frames.
  [[nodiscard]] static bool all_written(const TcpConnection& connection) noexcept {
    return connection.queue_.empty() && (!connection.sealed_ || connection.sealed_->unsent().empty());
  }

 private:
  [[nodiscard]] static bool write_unsent(TcpConnection& connection);
  static void receive_greeting(TcpConnection& connection);
  static void greeted(TcpConnection& connection, SealedStream::Greeted greeted);
  static void refuse(TcpConnection& connection, RefuseReason reason, const Error& error);
  static void open_records(TcpConnection& connection);
  [[nodiscard]] static bool open_record(TcpConnection& connection);
  static void corrupt(TcpConnection& connection, const std::string& what);
};

}  // namespace tributary::transport
