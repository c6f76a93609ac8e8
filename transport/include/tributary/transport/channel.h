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

/// Answer to "where does this frame's payload go".
struct Accept {
  std::span<std::byte> payload;
};  // exactly payload_bytes long; ours to write until on_frame, on_closed, close() or destruction
struct NotYet {};  // stop reading; asked again after Channel::resume()
struct Reject {
  Error error;
};  // close the channel with this error
using Placement = std::variant<Accept, NotYet, Reject>;

/// What a channel tells its user. A handler must outlive its channels. No callback is re-entrant: none happens inside
/// send(), close(), resume() or a constructor, only inside poll().
class ChannelHandler {
 public:
  virtual ~ChannelHandler() = default;
  /// connect() has succeeded. Frames sent before are written now. Not called on accepted channels.
  virtual void on_open(Channel&) {}
  /// A header that passed decode() has arrived. Called once per frame, again after NotYet and resume().
  virtual Placement on_header(Channel& channel, const FrameHeader& header) = 0;
  /// Asked before on_header, by transports whose payloads can lie in memory that the other side has written, once one
  /// does, whole and in one piece (shared memory; room that was made). True: the payload is taken as it lies. on_frame
  /// brings it, without on_header before; it must not be written to, and it stays there until Channel::give_back().
  /// False: on_header is asked. The other side could still change it: who reads it twice may read two things. May be
  /// asked several times for one frame.
  virtual bool takes_in_place(Channel&, const FrameHeader&) { return false; }
  /// The payload has landed whole where on_header said (nothing, for payload_bytes == 0), or lies where it was written.
  virtual void on_frame(Channel& channel, const FrameHeader& header, std::span<std::byte> payload) = 0;
  /// The bytes of a send() with this cookie are not referenced any more. In the order of the sends; not called for
  /// send_copy().
  virtual void on_sent(Channel&, std::uint64_t /*cookie*/) {}
  /// The last callback of a channel that was connected or accepted: the other side closed (peer_gone), the connect
  /// failed (unreachable), a frame was corrupt or rejected. Not called after the user's own close(). Payloads still
  /// queued are not referenced any more. A payload that was half received stays half written.
  virtual void on_closed(Channel& channel, const Error& error) = 0;
};

/// One connection. Destroying it closes it. It may be closed, but not destroyed, inside its own callbacks.
class Channel {
 public:
  virtual ~Channel() = default;
  /// Queues a frame; header.payload_bytes is set from `payload`, which is borrowed until on_sent(cookie), on_closed,
  /// close() or destruction. The header is copied. False: the queue (frames_queued_max of the transport's settings) is
  /// full or the channel is closed; nothing was queued. No system call need have happened when this returns; it is
  /// written at the latest in the next poll().
  [[nodiscard]] virtual bool send(const FrameHeader& header, std::span<const std::byte> payload,
                                  std::uint64_t cookie) = 0;
  /// The same for small, rare control frames: the payload is copied, there is no bound but memory, on_sent is not
  /// called. Allocates.
  virtual void send_copy(const FrameHeader& header, std::span<const std::byte> payload) = 0;
  /// A payload that takes_in_place() took is not read any more. In any order; those that are kept for long hold the
  /// sender up. The end of the channel, too, leaves them readable until it is destroyed.
  virtual void give_back(std::span<const std::byte> /*payload*/) {}
  /// Hints, for transports whose other side can write straight into this process; others do nothing. What comes without
  /// one, or in spite of it, comes as ever.
  ///
  /// The frame with exactly this header, payload_bytes included, will be placed there: on_header will answer so. Said
  /// before the send() that makes the other side send it, so that it knows before. The memory is the other side's to
  /// write until on_frame brings that frame, or the channel has ended.
  virtual void expect(const FrameHeader& /*header*/, std::span<std::byte> /*place*/) {}
  /// So many payloads of at most so many bytes may come before they are asked for: into memory of the channel's own,
  /// from which takes_in_place() can take them. Once; Transport::room_bytes() says what it takes.
  virtual void make_room(std::uint32_t /*payloads*/, std::uint32_t /*payload_bytes*/) {}
  /// Go on reading after NotYet: on_header is called again for the same frame in a later poll().
  virtual void resume() = 0;
  /// Closes at once; frames still queued may be lost. No callback follows.
  virtual void close() = 0;
  /// Closes when all that is queued has been handed to the network, or after `limit`. No callback follows; the handler
  /// may go away, the borrowed payloads of queued send()s, and the place of a payload that is just being received, may
  /// not until the channel is closed() or destroyed.
  virtual void close_after_flush(Duration limit) = 0;
  /// Since close() or on_closed; after close_after_flush() not before it has ended, so that its owner knows when to
  /// destroy the channel.
  [[nodiscard]] virtual bool closed() const noexcept = 0;
  /// Its bytes go through memory that both sides share; once it is open.
  [[nodiscard]] virtual bool shares_memory() const noexcept { return false; }
  /// For messages: the other side's address.
  [[nodiscard]] virtual std::string peer() const = 0;
  /// For whom, and how, what goes over it is sealed: the other side has shown that it has that link's secret. None: in
  /// clear.
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

/// A promise that memory does not go away before this does. Any thread may end it.
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
  /// For transports that register memory with a device: what is sent from here or received to here is registered once,
  /// as a whole, instead of for each frame. nullptr: it makes no difference. Any thread.
  [[nodiscard]] virtual std::unique_ptr<KeptMemory> keep_registered(std::span<const std::byte> /*memory*/) {
    return nullptr;
  }
  /// The memory that Channel::make_room() takes; 0: it does nothing here.
  [[nodiscard]] virtual std::uint64_t room_bytes(std::uint32_t /*payloads*/, std::uint32_t /*payload_bytes*/) const {
    return 0;
  }
};

}  // namespace tributary::transport
