#pragma once
// The user's end of a channel whose I/O runs on another thread. All callbacks and all state of the contract are here;
// the I/O thread only moves bytes.
#include <memory>
#include <optional>
#include <string>

#include "transport/channel/forwarding_channel.h"
#include "transport/channel/frame_reader.h"
#include "transport/io_threads/exchange.h"

namespace tributary::transport::io_threads {

class IoThread;
class Core;

class UserEnd final : public std::enable_shared_from_this<UserEnd> {
 public:
  /// `end` is the other end, which belongs to `thread`; `open` is true if the channel was taken over from another
  /// transport.
  UserEnd(Core& core, IoThread& thread, IoEnd* end, Key key, ChannelHandler& handler, std::string peer, bool open);

  // ---- Calls of Channel: they call no callback
  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie);
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload);
  void give_back(std::span<const std::byte> /*payload*/) {}  // no payload is taken in place
  void expect(const FrameHeader& header, std::span<std::byte> place);
  void resume();
  void close();
  void close_after_flush(Duration limit);
  void channel_destroyed();
  [[nodiscard]] bool closed() const noexcept { return state_ == State::closed; }
  [[nodiscard]] bool shares_memory() const noexcept { return shares_memory_; }
  [[nodiscard]] std::optional<SealedLink> sealed() const { return sealed_; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  void set_channel(Channel* channel) noexcept { channel_ = channel; }

  // ---- Calls of the core
  [[nodiscard]] Key key() const noexcept { return key_; }
  void on_event(Event& event);
  /// Shows again the header for which the handler has answered NotYet.
  void turn();
  /// Closes without a callback, because the transport ends.
  void shut_down() noexcept;
  bool due_ = false;  // true: this end is in the core's list

  // ---- Calls of FrameReader
  [[nodiscard]] Channel* channel() const noexcept { return channel_; }
  [[nodiscard]] ChannelHandler* handler() const noexcept { return handler_; }
  [[nodiscard]] bool serving() const noexcept { return state_ == State::open; }
  void count_callback() noexcept;
  void tell_closed(Error error);
  void make_due();

 private:
  //   opening --opened--> open --close_after_flush--> flushing --flushed--> closed
  //      |                  |                                                 ^
  //      +------------------+--- close, the other side's end, a reject -------+
  enum class State : std::uint8_t { opening, open, flushing, closed };

  void on_opened(EventDetails& details);
  void ask(const FrameHeader& header);
  void on_landed(Event& event);
  void put(Command command);
  /// Returns whether the I/O thread may use the user's memory.
  [[nodiscard]] bool lends_memory() const noexcept {
    return sends_under_way_ > 0 || expected_ > 0 || reader_.in_frame() || state_ == State::flushing;
  }
  void end_io();

  Core& core_;
  IoThread& thread_;
  IoEnd* const end_;
  const Key key_;
  ChannelHandler* handler_;
  Channel* channel_ = nullptr;
  State state_;
  std::string peer_;
  bool shares_memory_ = false;
  std::optional<SealedLink> sealed_;
  FrameReader reader_;
  std::optional<FrameHeader> asked_;   // the I/O thread waits for the place of this frame's payload
  std::uint32_t sends_under_way_ = 0;  // frames for which on_sent has not come
  std::uint32_t expected_ = 0;         // number of announced frames that have not come
};

}  // namespace tributary::transport::io_threads
