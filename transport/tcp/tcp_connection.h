#pragma once
// One TCP connection: opening (tcp_connect.cc), reading (tcp_read.cc), writing (tcp_write.cc), ending
// (tcp_connection.cc). If it is sealed, tcp_sealing.cc reads and writes.
#include <array>
#include <deque>
#include <optional>
#include <string>

#include "transport/channel/connection.h"
#include "transport/channel/frame_reader.h"
#include "transport/tcp/bytes_watch.h"
#include "transport/tcp/sealed_stream.h"
#include "transport/tcp/tcp_core.h"
#include "transport/tcp/tcp_socket.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::transport {

/// An open connection that was released.
struct TcpHandOver {
  OwnedDescriptor socket;
  std::vector<std::byte> staged;           // bytes of the next frames, which were read but not served
  std::unique_ptr<SealedStream> sealed{};  // nullptr: frames travel in clear
};

class TcpConnection final : public Connection {
 public:
  static std::shared_ptr<TcpConnection> make(TcpCore& core, std::string peer, ChannelHandler* handler);
  TcpConnection(const TcpConnection&) = delete;
  TcpConnection& operator=(const TcpConnection&) = delete;

  /// Starts with a connected socket, or with the state of a connection that was released.
  void open(TcpHandOver taken);
  void connect(const Endpoint& to, Duration limit);
  /// Closes silently, so that another connection can take its place. Call it only before the connection is open.
  [[nodiscard]] Beginning hand_on();
  /// Connects in the place of another connection, without a detour.
  void go_on(std::deque<SocketAddress> addresses, Beginning&& beginning);
  /// Takes the addresses that were not tried yet.
  [[nodiscard]] std::deque<SocketAddress> take_addresses() noexcept { return std::exchange(addresses_, {}); }

  // ---- Calls of the user: they neither call back nor block.
  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) override;
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override;
  void resume() override;
  void close() override;
  void close_after_flush(Duration limit) override;
  void channel_destroyed() override;
  /// Fails while a frame is partly read or written. With `empty`, it also fails while bytes were read but not served.
  [[nodiscard]] Result<TcpHandOver> release(bool empty = false);
  [[nodiscard]] bool closed() const noexcept override { return state_ == State::closed; }
  [[nodiscard]] TcpCore& core() const noexcept { return core_; }
  [[nodiscard]] std::optional<SealedLink> sealed() const override;
  [[nodiscard]] int socket() const noexcept override { return socket_.get(); }

  // ---- Calls of the core (Pollable)
  void mark(std::uint32_t events) override;
  void turn() override;
  void write_turn() override;
  void on_deadline() override;
  void shut_down() override { close(); }

 private:
  enum class State : std::uint8_t { connecting, open, flushing, lingering, closed };

  TcpConnection(TcpCore& core, std::string peer, ChannelHandler* handler);

  friend class FrameReader;
  friend class TcpSealing;
  // tcp_connection.cc
  void count_callback() noexcept { core_.count_callback(); }
  void make_due() { core_.make_due(*this); }
  /// Returns 0 or errno.
  [[nodiscard]] int watch() noexcept;
  void tell_closed(Error error);
  void linger();
  [[nodiscard]] bool serving() const noexcept { return state_ == State::open; }
  [[nodiscard]] bool taking_frames() const noexcept {
    return state_ == State::open || (state_ == State::connecting && !detached_);
  }
  [[nodiscard]] Error lost(int error) const;

  // tcp_connect.cc
  void look_up_name(const Endpoint& to);
  void looked_up(const Result<std::vector<SocketAddress>>& found);
  void try_next_address();
  bool start_connecting(const SocketAddress& address);
  void finish_connecting();
  void connected();
  void opened();

  // tcp_read.cc
  void read_turn();
  bool serve_staged();
  bool place_next();
  bool deliver();
  void receive(std::size_t& budget);
  void receive_nothing(int error);
  void read_short() noexcept;
  void discard_turn();
  [[nodiscard]] std::size_t staged() const noexcept { return staged_end_ - staged_begin_; }

  // tcp_write.cc
  bool write_some(std::size_t& budget);
  void write_failed(int error);
  void tell_sent();
  void after_write();

  static constexpr std::size_t kStagingBytes = 4096;  // room for many small frames, or a part of a large frame
                                                      // payload

  TcpCore& core_;
  PolledSocket socket_;
  std::unique_ptr<SealedStream> sealed_;  // nullptr: frames travel in clear
  State state_ = State::connecting;
  bool detached_ = false;       // close_after_flush() was called: no callback follows
  std::optional<Error> fatal_;  // error with which on_closed is due

  // State of reading
  bool readable_ = false;       // the system has reported bytes, and each later read has found some
  bool tells_no_more_ = false;  // no event will report further bytes, so reads go on: see read_short()
  bool hung_up_ = false;        // the system reports an error or a reset, which a stalled channel would not see
  bool peer_finished_ = false;
  FrameReader reader_;
  std::size_t staged_begin_ = 0;
  std::size_t staged_end_ = 0;
  std::array<std::byte, kStagingBytes> staging_;

  // State of writing
  bool writable_ = false;  // the system has reported room, and has taken all bytes of later writes
  int write_error_ = 0;
  BytesWatch bytes_watch_;
  SendQueue queue_;

  // State of opening and ending
  Duration limit_{};
  TimePoint deadline_ = TimePoint::max();
  bool straight_ = false;  // connects without a detour, which was tried already
  std::deque<SocketAddress> addresses_;
  int connect_error_ = 0;
};

}  // namespace tributary::transport
