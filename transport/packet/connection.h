#pragma once
// One connection: opening (connection_open.cc), frames (connection_frames.cc), packets and ending (connection.cc). The
// flow (flow.h) turns frames into packets and back.
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "transport/channel/forwarding_channel.h"
#include "transport/channel/frame_reader.h"
#include "transport/packet/core.h"
#include "transport/packet/flow.h"
#include "transport/packet/seal.h"
#include "transport/socket/address.h"

namespace tributary::transport::packet {

class PacketConnection final : public StreamReader,
                               public PacketSink,
                               public TurnMarks,
                               public turn::TurnPart,
                               public std::enable_shared_from_this<PacketConnection> {
 public:
  PacketConnection(PacketCore& core, std::string peer, ChannelHandler* handler);
  ~PacketConnection() override;
  PacketConnection(const PacketConnection&) = delete;
  PacketConnection& operator=(const PacketConnection&) = delete;

  void set_channel(Channel* channel) noexcept { channel_ = channel; }
  /// Enters the connection in the core's table.
  void enter();
  void connect(const Endpoint& to, Duration limit);
  /// Makes the listener's side, after an open with a correct cookie.
  void accept(const PacketAddress& from, const Handshake& handshake, const std::optional<LinkKeys::Link>& link);

  // ---- Calls of the user: they neither call back nor block.
  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie);
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload);
  void give_back(std::span<const std::byte> payload);
  void set_priority(std::uint32_t priority) noexcept { priority_ = priority; }
  void resume();
  void close();
  void close_after_flush(Duration limit);
  void channel_destroyed();
  [[nodiscard]] bool closed() const noexcept {
    return abandoned_ || state_ == State::departing || state_ == State::closed;
  }
  [[nodiscard]] const std::string& peer() const noexcept { return peer_; }
  [[nodiscard]] std::optional<SealedLink> sealed() const { return seal_ ? std::optional(link_->link) : std::nullopt; }

  // ---- Calls of the core
  void take_challenge(const Handshake& handshake);
  void take_accept(const PacketHeader& header, const Handshake& handshake, std::span<const std::byte> datagram);
  void take_refuse(RefuseReason reason);
  void take_redirect(const Handshake& handshake, const PacketAddress& from);
  /// Returns true if the packet's payload may be read. Returns false if the packet is forged or repeated: it is
  /// counted, and must be dropped.
  [[nodiscard]] bool unseal(const PacketHeader& header, std::span<std::byte> datagram);
  /// Does the same for a control packet, which has the handshake's kind of authenticator.
  [[nodiscard]] bool control_is_authentic(const PacketHeader& header, std::span<const std::byte> datagram);
  void take_data(const Arrival& arrival);
  /// The short way of take_data(): if the packet is the whole next frame, takes it where it lies. Otherwise returns
  /// false and changes nothing.
  [[nodiscard]] bool take_frame(const Arrival& arrival);
  /// Call it after every call that may have changed the flow.
  void after_packets();
  void take_close();
  /// Handles a message of the other side, or of its host, that the connection does not exist. `nobody`: no process
  /// listens there, either.
  void take_reset(bool nobody);
  /// Asks the port for the path's MTU, which may have become smaller.
  void ask_route();
  /// Answers an open that came again because its answer was lost.
  void repeat_accept(const PacketAddress& from);
  /// Gives the place of this half open or departing connection to another connection; the other side is told when it
  /// sends again.
  void make_place() noexcept { end(); }
  void turn();
  /// Sends the packets that flow and window allow now.
  void transmit_turn();
  void on_time();
  void excuse(Duration absence) noexcept { flow_.excuse(absence); }
  [[nodiscard]] bool last_words();
  void shut_down();
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] const PacketAddress& address() const noexcept { return address_; }

  // ---- Calls of the flow (StreamReader, PacketSink)
  std::size_t take(std::span<const std::byte> bytes) override;
  bool send_packet(const DataHeader& header, std::span<std::byte> head, std::span<const std::byte> rest) override;
  bool send_frame(const DataHeader& header, const WholeFrame& frame) override;

 private:
  enum class State : std::uint8_t {
    looking_up,  // another thread looks up the name
    opening,     // open was sent
    half_open,   // accept was sent; the other side's first packet has not come
    open,
    flushing,   // close_after_flush() was called
    departing,  // closed for the user; the other side has not confirmed the end yet
    closed,
  };

  // connection_open.cc
  void looked_up(const Result<std::vector<SocketAddress>>& found);
  void try_next_address();
  void send_open();
  [[nodiscard]] bool choose_seal(const Handshake& handshake);
  void make_seal(const SealRandom& client_random, const SealRandom& listener_random, bool client);
  void opened(const Handshake& handshake, const PacketAddress& from);
  void established();
  void fail_later(Error error);

  friend class transport::FrameReader;
  // ---- Calls of the frame reader
  [[nodiscard]] ChannelHandler* handler() const noexcept { return handler_; }
  [[nodiscard]] Channel* channel() const noexcept { return channel_; }
  void count_callback() noexcept { core_.count_callback(); }
  void make_due() { core_.make_due(*this); }

  // connection_frames.cc
  bool place_next(std::span<const std::byte, kFrameHeaderBytes> bytes, std::span<const std::byte> behind);
  bool keep_in_place(const FrameHeader& header, std::span<const std::byte> behind);
  bool keep(const FrameHeader& header, const std::byte* payload);
  [[nodiscard]] bool between_frames() const noexcept {
    return state_ == State::open && !reader_.in_frame() && header_landed_ == 0 && !reader_.stalled();
  }
  void deliver();
  void tell_sent();

  // connection.cc
  void look_at_deadline();
  void tell_closed(Error error);
  void abandon();
  void depart();
  void send_close();
  void send_control(const PacketHeader& header, const Handshake* handshake);
  void suspect();
  void end() noexcept;
  [[nodiscard]] bool serving() const noexcept { return state_ == State::open; }
  [[nodiscard]] bool opening() const noexcept { return state_ == State::looking_up || state_ == State::opening; }
  [[nodiscard]] bool taking_frames() const noexcept { return state_ == State::open || (opening() && !detached_); }
  [[nodiscard]] bool flowing() const noexcept { return state_ == State::open || state_ == State::flushing; }

  PacketCore& core_;
  std::string peer_;
  Channel* channel_ = nullptr;
  ChannelHandler* handler_ = nullptr;
  State state_ = State::opening;
  bool abandoned_ = false;      // closed for the user, while copied frames are still being sent
  bool detached_ = false;       // close_after_flush() was called: no callback follows
  std::optional<Error> fatal_;  // error with which on_closed is due
  std::uint64_t id_ = 0;
  std::uint64_t peer_id_ = 0;
  PacketAddress address_;
  Flow flow_;
  std::optional<LinkKeys::Link> link_;            // the link for which the connection is sealed; empty: no seal
  std::unique_ptr<Seal> seal_;                    // made when both sides' random numbers are known
  SealRandom random_{};                           // random number of this side
  bool seal_chosen_ = false;                      // true: link_ is final
  TimePoint suspected_until_ = TimePoint::max();  // the other side is gone if no authentic packet comes before

  // State of reading
  FrameReader reader_;
  FrameBytes header_bytes_;
  std::size_t header_landed_ = 0;
  struct Kept {
    const std::byte* payload;
    void* buffer;
  };
  Ring<Kept> kept_;  // payloads that the handler keeps in their packets, in the order of arrival

  // State of opening and ending
  Endpoint to_;
  Duration limit_{};
  TimePoint give_up_at_ = TimePoint::max();
  TimePoint act_at_ = TimePoint::max();  // time when `open` or `close` is sent again
  std::uint32_t attempts_ = 0;
  struct Asked {
    std::uint64_t cookie = 0;
    bool redirected = false;
    TimePoint key_until = TimePoint::max();  // the listener has no key yet: the time until which this side asks again
  } asked_;
  std::uint32_t credit_told_ = 0;
  std::uint32_t priority_ = 0;  // priority of the flow's packets; packets that open or end the connection have none
  std::deque<PacketAddress> addresses_;
};

using PacketChannel = ForwardingChannel<PacketCore, PacketConnection>;

}  // namespace tributary::transport::packet
