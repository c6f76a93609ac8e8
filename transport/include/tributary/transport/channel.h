#pragma once
// The contract of every reliable transport: ordered channels of frames, driven by one thread.
//
// A channel reads a header, asks its handler where the payload goes, and reads the payload straight to that place: a
// slot, the caller's buffer. It writes payloads straight from where they are. Nothing here knows slots, trees or
// reductions.
//
// Threads: a Transport and all that comes from it belong to one thread; every call and every callback happens there,
// callbacks only from within Transport::poll. `Transport::post` alone may be called from anywhere.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/frame.h"
#include "tributary/transport/link_keys.h"

namespace tributary::transport {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

class Channel;

/// The answer to the question where a frame's payload goes.
struct Accept {
  std::span<std::byte> payload;
};  // exactly payload_bytes long; the transport's to write until on_frame, on_closed, close() or destruction
struct NotYet {};  // stop reading; asked again after Channel::resume()
struct Reject {
  Error error;
};  // close the channel with this error
using Placement = std::variant<Accept, NotYet, Reject>;

/// The callbacks of a channel. A handler must outlive its channels. No callback is re-entrant: none happens inside
/// send(), close(), resume() or a constructor, only inside poll().
class ChannelHandler {
 public:
  virtual ~ChannelHandler() = default;
  /// connect() has succeeded. Frames that were sent before are written now. Not called on accepted channels.
  virtual void on_open(Channel&) {}
  /// A header that passed decode() has arrived. Called once per frame, again after NotYet and resume().
  virtual Placement on_header(Channel& channel, const FrameHeader& header) = 0;
  /// Asked before on_header, by transports where a payload can lie whole in memory that the other side has written
  /// (shared memory; room that was made). True: the handler takes the payload as it lies. on_frame then brings it,
  /// without on_header before; it must not be written to, and it stays there until Channel::give_back(). False:
  /// on_header is asked. The other side could still change the payload: two reads of it may find two things. The
  /// question may come several times for one frame.
  virtual bool takes_in_place(Channel&, const FrameHeader&) { return false; }
  /// The payload is there, whole: at the place that on_header gave, or where it was written (takes_in_place). Empty for
  /// payload_bytes == 0.
  virtual void on_frame(Channel& channel, const FrameHeader& header, std::span<std::byte> payload) = 0;
  /// The transport no longer reads the bytes of the send() with this cookie. Calls come in the order of the sends; none
  /// comes for send_copy().
  virtual void on_sent(Channel&, std::uint64_t /*cookie*/) {}
  /// The last callback of a channel that was connected or accepted: the other side closed (peer_gone), the connect
  /// failed (unreachable), a frame was corrupt or rejected. Not called after the user's own close(). The transport no
  /// longer reads payloads that are still queued. A payload that was half received stays half written.
  virtual void on_closed(Channel& channel, const Error& error) = 0;
};

/// One connection. Destroying it closes it. It may be closed, but not destroyed, inside its own callbacks.
class Channel {
 public:
  virtual ~Channel() = default;
  /// Queues a frame; header.payload_bytes is set from `payload`, which is borrowed until on_sent(cookie), on_closed,
  /// close() or destruction. The header is copied. False: the queue (frames_queued_max of the transport's settings) is
  /// full or the channel is closed; nothing was queued. The frame is written at the latest in the next poll(), so this
  /// call may return without a system call.
  [[nodiscard]] virtual bool send(const FrameHeader& header, std::span<const std::byte> payload,
                                  std::uint64_t cookie) = 0;
  /// The same for small, rare control frames: the payload is copied, memory is the only bound, and on_sent is not
  /// called. Allocates.
  virtual void send_copy(const FrameHeader& header, std::span<const std::byte> payload) = 0;
  /// Says that a payload which takes_in_place() took is read no more. Payloads go back in any order; those that are
  /// kept for long hold the sender up. After the channel's end they stay readable until it is destroyed.
  virtual void give_back(std::span<const std::byte> /*payload*/) {}
  /// Two hints, for transports whose other side can write straight into this process; other transports ignore them. A
  /// frame that comes without a hint, or not as the hint said, is received as usual.
  ///
  /// expect(): on_header will answer `place` for the frame with exactly this header, payload_bytes included. Said
  /// before the send() that makes the other side send the frame, so that the other side knows in time. The other side
  /// may write to the memory until on_frame brings that frame, or the channel has ended.
  virtual void expect(const FrameHeader& /*header*/, std::span<std::byte> /*place*/) {}
  /// Up to `payloads` payloads of at most `payload_bytes` each may come before they are asked for: into memory of the
  /// channel's own, from which takes_in_place() can take them. Called once; Transport::room_bytes() says how much
  /// memory this costs.
  virtual void make_room(std::uint32_t /*payloads*/, std::uint32_t /*payload_bytes*/) {}
  /// Goes on reading after NotYet: on_header is called again for the same frame in a later poll().
  virtual void resume() = 0;
  /// Closes at once; frames still queued may be lost. No callback follows.
  virtual void close() = 0;
  /// Closes when all that is queued has been handed to the network, or after `limit`. No callback follows, so the
  /// handler may be destroyed. The borrowed payloads of queued send()s, and the place of a payload that is just being
  /// received, must stay until the channel is closed() or destroyed.
  virtual void close_after_flush(Duration limit) = 0;
  /// True from close() or on_closed on. After close_after_flush() it becomes true when the flush has ended, so that the
  /// owner knows when to destroy the channel.
  [[nodiscard]] virtual bool closed() const noexcept = 0;
  /// Its bytes go through memory that both sides share. False until the channel is open.
  [[nodiscard]] virtual bool shares_memory() const noexcept { return false; }
  /// The other side's address, for messages.
  [[nodiscard]] virtual std::string peer() const = 0;
  /// The link that the channel is sealed for, and how: the other side has shown that it has that link's secret. None:
  /// the channel goes in clear.
  [[nodiscard]] virtual std::optional<SealedLink> sealed() const { return std::nullopt; }
};

/// Gets each accepted connection. The handler must be set before the call returns: return it.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  /// The returned handler gets the channel's callbacks; nullptr refuses the connection.
  virtual ChannelHandler* on_accept(std::unique_ptr<Channel> channel) = 0;
};

/// Stops listening when destroyed.
class Listener {
 public:
  virtual ~Listener() = default;
  [[nodiscard]] virtual Endpoint local() const = 0;  // with the port that was chosen for port 0
};

/// A promise that memory does not go away before this object does. Any thread may end it.
class KeptMemory {
 public:
  virtual ~KeptMemory() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Port 0 chooses one. Errc::io names the address and the reason (in use, no permission).
  [[nodiscard]] virtual Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) = 0;
  /// Never blocks: on_open or on_closed follows within `limit`. Frames may be queued at once.
  [[nodiscard]] virtual std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler,
                                                         Duration limit) = 0;
  /// Runs callbacks that are due; waits up to `wait` when there is nothing to do. Returns how many callbacks ran.
  virtual std::size_t poll(Duration wait) = 0;
  /// The transport's clock: steady time, or the simulator's.
  [[nodiscard]] virtual TimePoint now() const = 0;
  /// Runs `call` within a later poll() on the transport's thread, and wakes a waiting poll(). Any thread.
  virtual void post(std::function<void()> call) = 0;
  /// For transports that register memory with a device: frames to and from `memory` use one registration of the whole,
  /// instead of one for each frame. nullptr: it makes no difference here. Any thread.
  [[nodiscard]] virtual std::unique_ptr<KeptMemory> keep_registered(std::span<const std::byte> /*memory*/) {
    return nullptr;
  }
  /// The bytes of memory that Channel::make_room() takes; 0: it does nothing here.
  [[nodiscard]] virtual std::uint64_t room_bytes(std::uint32_t /*payloads*/, std::uint32_t /*payload_bytes*/) const {
    return 0;
  }
};

}  // namespace tributary::transport
