#pragma once
// One connection over a reliable queue pair, or several: opening (verbs_connect.cc, verbs_pairs.cc), receiving
// (verbs_receive.cc), the peer's writes into this process (verbs_places.cc), sending (verbs_send.cc), ending
// (verbs_connection.cc).
//
// Several queue pairs. All are alike: one work request sends a whole message, or a whole payload, through any of them.
// Numbers give the order: each message, and each write that is reported, has a number in its prefix or its immediate.
// This side takes messages and writes in the order of the numbers, and early ones wait (came()). So the handler sees a
// payload only when it is whole: the completion of the request that wrote it reports it, and a device completes this
// request on the other side only when all bytes are there. The handler also sees it after all earlier messages, through
// whatever queue pair they came. A window gives a right, and belongs to one queue pair. So the message about a place or
// room goes through the queue pair by which the peer must write there, right behind the bind. Fetched payloads, the
// probe and the last message use the first queue pair; the last message waits until no work is outstanding on the other
// queue pairs. If a queue pair fails, the connection ends.
//
// The accepting side has its further queue pairs ready before it accepts; the connecting side has them ready before its
// first message. So the connecting side may use them at once, and the accepting side when a message has come.
//
// Sealed connections (verbs_sealing.cc). All messages, and with them all payloads, go through one queue pair and through
// this side's rings, where they are sealed and opened. The code of places, room and fetched payloads is not used.
//
// The header credit.h shows how many messages may be under way, why a receive is always posted before it can be needed,
// and why the two sides never wait for each other without end.
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <thread>

#include "transport/channel/forwarding_channel.h"
#include "transport/channel/frame_reader.h"
#include "transport/verbs/credit.h"
#include "transport/verbs/fetch.h"
#include "transport/verbs/frame_queue.h"
#include "transport/verbs/inbox.h"
#include "transport/verbs/landing.h"
#include "transport/verbs/memory_windows.h"
#include "transport/verbs/places.h"
#include "transport/verbs/proof.h"
#include "transport/verbs/queue_pair.h"
#include "transport/verbs/rings.h"
#include "transport/verbs/send_list.h"
#include "transport/verbs/verbs_core.h"
#include "transport/verbs/wire.h"

namespace tributary::transport::verbs {

class SealedMessages;
class VerbsListenPoint;

struct NetworkAddress {
  sockaddr_storage storage{};
  [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};
/// Finds the addresses of a host; may wait for the name server. `numeric`: finds them only if no look-up is needed.
[[nodiscard]] Result<std::vector<NetworkAddress>> addresses_of(const Endpoint& endpoint, bool numeric);
[[nodiscard]] Endpoint endpoint_of(const sockaddr& address);

class VerbsConnection final : public Notified,
                              public TurnMarks,
                              public turn::TurnPart,
                              public std::enable_shared_from_this<VerbsConnection> {
 public:
  VerbsConnection(VerbsCore& core, std::string peer, ChannelHandler* handler);
  ~VerbsConnection() override;
  VerbsConnection(const VerbsConnection&) = delete;
  VerbsConnection& operator=(const VerbsConnection&) = delete;

  void connect(const Endpoint& to, Duration limit);
  /// Takes a connect request. `accepted` is called when the connection is open.
  void accept(ConnectionIdPtr id, const Greeting& theirs, std::uint8_t reads, std::function<void()> accepted);
  void set_channel(Channel* channel) noexcept { channel_ = channel; }
  void set_handler(ChannelHandler* handler) noexcept { handler_ = handler; }

  // ---- Calls of the user: they neither call back nor block.
  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie);
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload);
  void give_back(std::span<const std::byte> payload);
  void expect(const FrameHeader& header, std::span<std::byte> place);
  void make_room(std::uint32_t payloads, std::uint32_t payload_bytes);
  [[nodiscard]] Status reach(std::span<const std::byte> memory);
  void resume();
  void close();
  void close_after_flush(Duration limit);
  void channel_destroyed();
  [[nodiscard]] bool closed() const noexcept { return state_ == State::closed; }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  [[nodiscard]] std::optional<SealedLink> sealed() const;

  // ---- Calls of the core
  void turn();
  void send_turn();
  void completed(const ibv_wc& completion);
  void time_out();
  void notice(const Notice& notice) override;
  void shut_down() override { close(); }
  [[nodiscard]] bool uses(const ibv_context* context, std::uint32_t queue_pair) const noexcept;
  void device_failed(const std::string& what);

 private:
  struct Route {
    std::optional<NetworkAddress> from;
    NetworkAddress to;
  };
  //  connecting --+                  close_after_flush()       the last message is posted    the peer's device has it
  //               +--> open ----------------> flushing ----------------> last_words ----------------> said
  //  accepting ---+
  //
  // If close_after_flush() is called before the connection is open, it begins to flush when it opens (detached_). All
  // states end in closed.
  enum class State : std::uint8_t { connecting, accepting, open, flushing, last_words, said, closed };
  struct Proved {
    LinkSecret secret;
    Proof proof;
  };
  /// State that is needed only until the connection is open.
  struct Opening {
    Endpoint to;
    TimePoint deadline{};
    std::deque<Route> routes;  // addresses that were not tried yet
    std::string error;         // error of the last address
    std::function<void()> accepted;
    std::uint64_t claimed_group = 0;
    bool claimed_by_peer = false;     // the peer's first frame, which must repeat its claim, has not
                                      // come
    std::uint32_t first_packet = 0;   // number of this side's first packet on further queue pairs
    std::optional<Proved> proved_by;  // secret by which the request was proved, and its proof
    bool here = false;                // true: this side has accepted
    std::jthread look_up;
  };
  /// Finds out whether the peer's device lives while no other work shows it.
  struct Keepalive {
    bool heard = false;    // a request has completed since the last probe()
    bool probing = false;  // the probe's write is under way
  };

  friend class transport::FrameReader;
  friend class VerbsSealing;
  // ---- Calls of the frame reader
  [[nodiscard]] ChannelHandler* handler() const noexcept { return handler_; }
  [[nodiscard]] Channel* channel() const noexcept { return channel_; }
  void count_callback() noexcept { core_.count_callback(); }
  void make_due() { core_.make_due(*this); }

  // verbs_connection.cc
  void broken(Error error);
  void tell_closed(Error error);
  void tell_sent();
  void tear_down();
  void probe();
  bool copy_payload(std::span<std::byte> to, const std::byte* from);
  [[nodiscard]] bool serving() const noexcept { return state_ == State::open; }
  [[nodiscard]] bool running() const noexcept {
    return state_ == State::open || state_ == State::flushing || state_ == State::last_words;
  }
  [[nodiscard]] bool taking_frames() const noexcept {
    return state_ == State::open || ((state_ == State::connecting || state_ == State::accepting) && !detached_);
  }

  // verbs_connect.cc
  void found_addresses(Result<std::vector<NetworkAddress>> found);
  void try_next_address();
  [[nodiscard]] Result<std::vector<NetworkAddress>> sources() const;
  Status start_resolving(const Route& route);
  Status start_connecting();
  Status make_queue_pairs(std::uint64_t group, std::uint32_t count);
  void set_up_sending(const Greeting& theirs);
  void opened();
  void connect_failed(const std::string& why);
  [[nodiscard]] rdma_conn_param parameters(const Greeting& ours) const;
  [[nodiscard]] Greeting greeting() const;
  [[nodiscard]] Greeting greeting_with_pairs() const;

  // verbs_pairs.cc
  [[nodiscard]] bool made_by_manager() const noexcept;
  [[nodiscard]] std::uint32_t pairs_wanted() const noexcept;
  [[nodiscard]] bool join(const Notice& answer);
  Status join_pairs(const Greeting& theirs);
  [[nodiscard]] bool others_quiet() const noexcept;
  /// True if further queue pairs may be used. The accepting side waits for the peer's first message, which shows that
  /// they are ready.
  [[nodiscard]] bool may_use_all() const noexcept { return !opening_.here || inbox_.came() > 0; }
  /// The queue pairs on which the peer may be told of the room now, as bits of room_untold_.
  [[nodiscard]] std::uint32_t tellable_room() const noexcept {
    return may_use_all() ? room_untold_ : room_untold_ & 1U;
  }
  void came(const Came& what);
  [[nodiscard]] std::optional<std::uint32_t> early_by(const Came& what);

  // verbs_receive.cc
  void take(const Came& what);
  void received(const Came& what);
  bool take_news(const MessagePrefix& prefix, std::size_t bytes);
  void arrived(const Arrived& what);
  void serve();
  bool serve_record();
  [[nodiscard]] std::span<const std::byte> message_of(const Arrived& message) const noexcept;
  bool message_over();
  bool serve_frame(const RecordHead& head, std::span<const std::byte> body);
  bool deliver();
  bool copy_and_deliver(const std::byte* from);
  bool fetch(const RemotePayload& from);
  void fetch_more();
  bool fetched();
  bool corrupt(const std::string& why);
  void discard_arrived();
  [[nodiscard]] std::span<std::byte> receive(std::uint32_t queue_pair, std::uint32_t index) const noexcept {
    return rings_.receive(queue_pair * credit_.depth() + index);
  }
  void post_receives();
  std::uint32_t post_receives(QueuePair& pair);
  void post_first_receives(QueuePair& pair);
  void completion_failed(const ibv_wc& completion);
  void retire(QueuePair& pair, std::uint32_t index);
  [[nodiscard]] bool awaits_revocation() const noexcept;

  // verbs_places.cc
  void written(const Came& what);
  void cell_written(const CellImmediate& said, const Came& what);
  void place_written(const PlaceImmediate& said, const Came& what);
  bool serve_place();
  bool serve_cell(const FrameHeader& header);
  [[nodiscard]] bool awaits_withdrawal(const FrameHeader& header);
  void revoke_places();
  void revoke_places(QueuePair& pair);
  bool learn_place(const RecordHead& head, const RemotePayload& where);
  [[nodiscard]] bool has_untold_room(const QueuePair& pair) const noexcept {
    return (room_untold_ >> pair.index & 1U) != 0;
  }
  [[nodiscard]] std::optional<std::size_t> tell_room(std::span<std::byte> rest, QueuePair& pair);
  [[nodiscard]] std::optional<std::size_t> tell_place(std::span<std::byte> rest, QueuePair& pair);

  // verbs_send.cc
  [[nodiscard]] bool may_send() const noexcept;
  [[nodiscard]] bool has_news() noexcept;
  [[nodiscard]] bool may_send_next() noexcept;
  [[nodiscard]] bool is_eager(std::size_t payload_bytes) const noexcept;
  enum class Travel : std::uint8_t { in_message, fetched, to_cell, to_place };
  [[nodiscard]] Travel travel_of(const FrameQueue::Frame& frame) const noexcept;
  [[nodiscard]] std::uint64_t next_work(WorkKind kind, QueuePair& pair) noexcept;
  bool post(QueuePair& pair);
  bool post_messages();
  bool post_lists();
  [[nodiscard]] QueuePair& pair_for(Travel travel, const FrameQueue::Frame* frame) noexcept;
  bool add_message(QueuePair& pair);
  bool add_cell(FrameQueue::Frame& frame, QueuePair& pair);
  bool add_place(FrameQueue::Frame& frame, QueuePair& pair);
  [[nodiscard]] Result<RegistrationPtr> register_payload(FrameQueue::Frame& frame, Access access);
  bool register_local(FrameQueue::Frame& frame, QueuePair& pair);
  [[nodiscard]] std::optional<std::size_t> fill_message(std::span<std::byte> message, QueuePair& pair);
  [[nodiscard]] std::optional<std::size_t> write_news(std::span<std::byte> message, std::size_t kept, QueuePair& pair);
  void write_prefix(std::span<std::byte> message, std::size_t used, std::uint32_t flags) noexcept;
  [[nodiscard]] std::optional<std::size_t> write_frame(FrameQueue::Frame& frame, std::span<std::byte> rest,
                                                       QueuePair& pair);
  [[nodiscard]] Result<std::uint32_t> offer(FrameQueue::Frame& frame, QueuePair& pair);
  void end_offers(std::uint32_t count);

  VerbsCore& core_;
  std::string peer_;
  Channel* channel_ = nullptr;
  ChannelHandler* handler_ = nullptr;
  State state_ = State::connecting;
  bool detached_ = false;        // close_after_flush() was called: no callback follows
  bool failed_ = false;          // the queue pair, its port or its device has failed
  std::optional<Error> broken_;  // reason of the connection's end, which follows the last received frame
  const std::uint32_t number_;
  Keepalive keepalive_;
  Opening opening_;

  std::shared_ptr<Device> device_;
  std::shared_ptr<Domain> domain_;
  ConnectionIdPtr id_;
  std::vector<QueuePair> pairs_;  // the first one is the queue pair of the id
  std::uint32_t reserved_ = 0;    // completions reserved in the device's queue
  Rings rings_;
  Credit credit_;
  std::unique_ptr<SealedMessages> seal_;  // nullptr: the connection is not sealed

  // State of receiving
  Inbox inbox_;
  FrameReader reader_;  // its in_frame() is true while the frame's payload is being fetched, or comes in parts
  Fetch fetch_;
  Landing landing_;
  std::array<MemoryWindow, kQueuePairsMax> landing_windows_;
  std::uint32_t room_untold_ = 0;  // a bit for each queue pair on which the peer must still be told of the room
  Places places_;
  std::optional<std::uint32_t> withdrawing_;  // place of a frame that came in another way, and is not served yet

  // State of sending
  FrameQueue queue_;
  MemoryWindows windows_;
  PeerLanding peer_landing_;
  PeerPlaces peer_places_;
  std::uint32_t binds_max_ = 0;      // most windows that are bound at the same time
  std::uint32_t message_bytes_ = 0;  // most bytes of a message to the peer; 0: its greeting was not taken yet
  std::uint32_t inline_bytes_ = 0;
};

class VerbsChannel final : public ForwardingChannel<VerbsCore, VerbsConnection, ReachesDeviceMemory> {
 public:
  using ForwardingChannel::ForwardingChannel;
  Status reach(std::span<const std::byte> memory) override { return own().reach(memory); }
};

}  // namespace tributary::transport::verbs
