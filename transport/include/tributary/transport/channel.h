#pragma once
// The contract of every reliable transport: ordered channels of frames, driven by one thread.
//
// A channel reads a header, asks its handler where the payload goes, and reads the payload directly to that place, such
// as a slot or the caller's buffer. It writes payloads directly from the sender's memory. No transport knows slots,
// trees or reductions.
//
// Threads: a Transport, its channels and its listeners belong to one thread. All calls and callbacks run there,
// callbacks only within Transport::poll. Any thread may call `Transport::post`, but no other function.
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
class TurnShare;

/// The answer to the question where a frame's payload goes.
struct Accept {
  std::span<std::byte> payload;
};  // exactly payload_bytes long; the transport may write to it until on_frame, on_closed, close() or destruction
struct NotYet {};  // stop reading; on_header is called again after Channel::resume()
struct Reject {
  Error error;
};  // close the channel with this error
using Placement = std::variant<Accept, NotYet, Reject>;

/// The callbacks of a channel. A handler must outlive its channels. No callback is re-entrant: none happens inside
/// send(), close(), resume() or a constructor, only inside poll().
class ChannelHandler {
 public:
  virtual ~ChannelHandler() = default;
  /// connect() has succeeded. Frames that were queued earlier are written now. Accepted channels do not get this call.
  virtual void on_open(Channel&) {}
  /// A header that passed decode() has arrived. The call comes once a frame, and again after NotYet and resume().
  virtual Placement on_header(Channel& channel, const FrameHeader& header) = 0;
  /// The transport calls this before on_header if the whole payload lies in memory that the other side has written
  /// (shared memory, or the room of make_room()). Return true to take the payload where it lies: on_frame follows
  /// without on_header. The handler must not write to the payload, which stays there until Channel::give_back(). Return
  /// false to get on_header. The other side can still change the payload, so two reads of a byte may differ. The
  /// transport may call this several times for one frame.
  virtual bool takes_in_place(Channel&, const FrameHeader&) { return false; }
  /// The whole payload has arrived: at the place that on_header gave, or where the other side wrote it
  /// (takes_in_place). The span is empty for payload_bytes == 0.
  virtual void on_frame(Channel& channel, const FrameHeader& header, std::span<std::byte> payload) = 0;
  /// The transport no longer reads the bytes of the send() with this cookie. Calls come in the order of the sends;
  /// send_copy() causes no call.
  virtual void on_sent(Channel&, std::uint64_t /*cookie*/) {}
  /// The last callback of a channel that was connected or accepted. Reasons: the other side closed (peer_gone), the
  /// connect failed (unreachable), a frame was corrupt or rejected. The user's own close() does not cause it. The
  /// transport no longer reads queued payloads. The place of a partly received payload stays partly written.
  virtual void on_closed(Channel& channel, const Error& error) = 0;
};

/// One connection. The destructor closes it. Inside its own callbacks a channel may be closed, but not destroyed.
class Channel {
 public:
  virtual ~Channel() = default;
  /// Queues a frame; header.payload_bytes is set from `payload`, which is borrowed until on_sent(cookie), on_closed,
  /// close() or destruction. The header is copied. Returns false and queues no frame if the queue (frames_queued_max of
  /// the transport's settings) is full or the channel is closed. The frame is written at the latest in the next poll(),
  /// so this call may make no system call.
  [[nodiscard]] virtual bool send(const FrameHeader& header, std::span<const std::byte> payload,
                                  std::uint64_t cookie) = 0;
  /// Queues a small, rare control frame: the transport allocates memory, copies the payload, sets no limit to the
  /// queue, and does not call on_sent.
  virtual void send_copy(const FrameHeader& header, std::span<const std::byte> payload) = 0;
  /// Ends the handler's reading of a payload that takes_in_place() took. Payloads may be given back in any order; a
  /// payload that is kept for long delays the sender. After on_closed, kept payloads stay readable until the channel is
  /// destroyed.
  virtual void give_back(std::span<const std::byte> /*payload*/) {}
  /// Two hints, for transports whose other side can write directly into this process; other transports ignore hints. A
  /// frame without a hint, or a frame that differs from the hint, is received as usual.
  ///
  /// expect() announces that on_header will answer `place` for the frame with exactly this header, payload_bytes
  /// included. The caller must call it before the send() that makes the other side send the frame, so that the other
  /// side knows the place in time. The other side may write there until on_frame shows that frame, or the channel has
  /// ended.
  virtual void expect(const FrameHeader& /*header*/, std::span<std::byte> /*place*/) {}
  /// False if expect() has no effect: each payload then lands between its on_header and its on_frame, so that the
  /// handler may answer the same place for several frames. It never changes.
  [[nodiscard]] virtual bool uses_expected_places() const noexcept { return false; }
  /// Makes room, in memory of the channel, for up to `payloads` payloads of at most `payload_bytes` each. The other
  /// side may write payloads there before on_header, and takes_in_place() may take them there. May be called once;
  /// Transport::room_bytes() returns the memory that it needs.
  virtual void make_room(std::uint32_t /*payloads*/, std::uint32_t /*payload_bytes*/) {}
  /// Makes the transport serve the channel as a part of this share of its thread's turns (turn_share.h); nullptr: the
  /// channel belongs to no share. A transport without shares ignores this call.
  virtual void set_turn_share(std::shared_ptr<TurnShare> /*share*/) {}
  /// Gives the packets that the channel sends this number, by which queueing disciplines choose a class: SO_PRIORITY of
  /// the channel's own socket, or over UDP SO_MARK of each packet. The system takes marks, and numbers above 6, only from
  /// processes with CAP_NET_ADMIN, and keeps its own otherwise. Other transports ignore this call.
  virtual void set_priority(std::uint32_t /*priority*/) {}
  /// Goes on reading after NotYet: on_header is called again for the same frame in a later poll().
  virtual void resume() = 0;
  /// Closes at once; frames still queued may be lost. No callback follows.
  virtual void close() = 0;
  /// Closes when all queued frames have been handed to the network, or after `limit`. No callback follows, so the
  /// handler may be destroyed. The payloads of queued send()s, and the place of a payload that is being received, must
  /// stay valid until the channel is closed() or destroyed.
  virtual void close_after_flush(Duration limit) = 0;
  /// True from close() or on_closed on. After close_after_flush() it becomes true when the flush has ended, so that the
  /// owner knows when to destroy the channel.
  [[nodiscard]] virtual bool closed() const noexcept = 0;
  /// True if the channel's bytes go through memory that both sides share. False until the channel is open.
  [[nodiscard]] virtual bool shares_memory() const noexcept { return false; }
  /// The other side's address, for messages.
  [[nodiscard]] virtual std::string peer() const = 0;
  /// The link for which the channel is sealed, and the kind of seal: the other side has proved that it has that link's
  /// secret. Empty: the channel is not sealed.
  [[nodiscard]] virtual std::optional<SealedLink> sealed() const { return std::nullopt; }
};

/// The receiver of each accepted connection. It returns the connection's handler.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  /// The returned handler gets the channel's callbacks; nullptr refuses the connection.
  virtual ChannelHandler* on_accept(std::unique_ptr<Channel> channel) = 0;
};

/// The destructor stops listening.
class Listener {
 public:
  virtual ~Listener() = default;
  [[nodiscard]] virtual Endpoint local() const = 0;  // if port 0 was asked for, this has the chosen port
};

/// A promise that memory lives at least as long as this object. Any thread may destroy the object.
class KeptMemory {
 public:
  virtual ~KeptMemory() = default;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// For port 0 the system chooses a port. Errc::io names the address and the reason (in use, no permission).
  [[nodiscard]] virtual Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) = 0;
  /// Never blocks: on_open or on_closed follows within `limit`. Frames may be queued at once.
  [[nodiscard]] virtual std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler,
                                                         Duration limit) = 0;
  /// Runs callbacks that are due; waits up to `wait` if none is due. Returns the number of callbacks that ran.
  virtual std::size_t poll(Duration wait) = 0;
  /// The transport's clock: steady time, or the simulator's.
  [[nodiscard]] virtual TimePoint now() const = 0;
  /// Runs `call` within a later poll() on the transport's thread, and wakes a waiting poll(). Any thread may call it.
  virtual void post(std::function<void()> call) = 0;
  /// Lets a transport that registers memory with a device use one registration of the whole `memory` for all frames to
  /// and from it, instead of one for each frame. nullptr: the transport registers no memory. Any thread may call it.
  [[nodiscard]] virtual std::unique_ptr<KeptMemory> keep_registered(std::span<const std::byte> /*memory*/) {
    return nullptr;
  }
  /// The bytes of memory that Channel::make_room() takes; 0: make_room() has no effect.
  [[nodiscard]] virtual std::uint64_t room_bytes(std::uint32_t /*payloads*/, std::uint32_t /*payload_bytes*/) const {
    return 0;
  }
};

}  // namespace tributary::transport
