#pragma once
// The turns of a PacketTransport. A turn takes the packets that have come, runs calls and deadlines that are due, and
// sends.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/packet/connection_table.h"
#include "transport/packet/endings.h"
#include "transport/packet/half_open.h"
#include "transport/packet/packet_transport.h"
#include "transport/packet/receive_stream.h"
#include "transport/packet/seal.h"
#include "transport/packet/sealed_room.h"
#include "transport/packet/siphash.h"
#include "transport/packet/wire.h"
#include "transport/seal/refusal.h"
#include "transport/socket/resolver.h"
#include "transport/turn/deadline_heap.h"
#include "transport/turn/due_list.h"
#include "transport/turn/engine.h"
#include "transport/turn/turn_part.h"

namespace tributary::transport::packet {

class PacketConnection;
using ConnectionPtr = std::shared_ptr<PacketConnection>;

/// The marks that the core keeps in each connection.
struct TurnMarks {
  bool due = false;                        // the connection is in the core's list `due_`
  bool touched = false;                    // the connection is in the core's list `touched_`
  bool dirty = false;                      // the connection is in the core's list `dirty_`
  TimePoint asked_for = TimePoint::max();  // the earliest time that the core was asked for
};

class PacketCore : public std::enable_shared_from_this<PacketCore>,
                   public turn::Engine<PacketCore>,
                   public turn::Rounds {
 public:
  PacketCore(PacketTransport::OpenPort open, const PacketSettings& settings, PacketTransport::Time time);

  void shut_down();

  /// Makes this core's turns and sleeps also serve the core `other`, which belongs to the same thread and has its own
  /// port. It does so until `other` has neither a listener nor connections.
  void drive(std::shared_ptr<PacketCore> other);
  /// True if this core, or a core that it drives, listens at the port.
  [[nodiscard]] bool listens_at(std::uint16_t port) const noexcept;
  /// Returns a core that does not listen, and has either no port or this port. It is this core or a core that it
  /// drives; nullptr: there is none.
  [[nodiscard]] std::shared_ptr<PacketCore> that_can_listen(const Endpoint& at);
  /// Begins to listen. A core has one listener at a time.
  [[nodiscard]] Result<Endpoint> listen(const Endpoint& at, Acceptor* acceptor, PacketTransport::Route route);
  void stop_listening() noexcept;
  /// Opens the port unless it is open.
  [[nodiscard]] Status open_port();

  // ---- Calls of connections, on the transport's thread
  [[nodiscard]] const PacketSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] PacketPort& port() noexcept { return *port_; }
  /// The checksums of packets' endings, for payloads that do not change before the flush.
  [[nodiscard]] Endings& endings() noexcept { return endings_; }
  /// The packet that is being read now; nullptr: none.
  [[nodiscard]] const ReceivedPacket* being_read() const noexcept { return being_read_; }
  [[nodiscard]] ChunkPool& pool() noexcept { return pool_; }
  [[nodiscard]] Resolver& resolver() noexcept { return resolver_; }
  [[nodiscard]] TimePoint now() const noexcept { return now_; }
  [[nodiscard]] TimePoint clock() const { return time_(); }
  /// Gives the connection a place and an id.
  [[nodiscard]] std::uint64_t enter(const ConnectionPtr& connection);
  void leave(std::uint64_t id) noexcept;
  /// Notes the other side's name for a connection, which resets and repeated opens use.
  void enter_peer(std::uint64_t peer_id, std::uint64_t id) { connections_.enter_peer(peer_id, id); }
  void leave_peer(std::uint64_t peer_id) noexcept { connections_.leave_peer(peer_id); }
  /// Makes the core call turn() in this poll or the next.
  void make_due(PacketConnection& connection);
  /// Makes the core call transmit_turn() soon.
  void make_dirty(PacketConnection& connection);
  /// Makes the core call after_packets() once for all packets of this burst.
  void make_touched(PacketConnection& connection);
  /// Makes the core call on_time() at this time or a little later.
  void want_time(PacketConnection& connection, TimePoint at);
  /// The bytes that each connection may promise to its peer, for the present number of connections.
  [[nodiscard]] std::size_t window_share() const noexcept;
  /// Sends a packet that belongs to no flow.
  void send_control(const PacketAddress& to, PacketHeader header, const Handshake* handshake);
  /// Sends such a packet with an authenticator over the header and the payload as they are sent.
  using MakeTag = std::function<SealTag(std::span<const std::byte> header, std::span<const std::byte> payload)>;
  void send_sealed_control(const PacketAddress& to, PacketHeader header, const Handshake* handshake,
                           const MakeTag& make_tag);
  /// Room for a payload that is sent encrypted; valid until the port is flushed.
  [[nodiscard]] std::span<std::byte> sealed_room(std::size_t bytes);
  [[nodiscard]] SealRandom random() noexcept;
  [[nodiscard]] LinkKeys* keys() const noexcept { return settings_.keys.get(); }
  [[nodiscard]] std::size_t datagram_bytes(const PacketAddress& to);
  [[nodiscard]] HalfOpen& half_open() noexcept { return half_open_; }
  /// The number of connections that have ended on this side, but whose other side has not confirmed the end. They also
  /// make place for newcomers.
  [[nodiscard]] HalfOpen& departing() noexcept { return departing_; }
  [[nodiscard]] Acceptor* acceptor() const noexcept { return acceptor_; }
  PacketStatistics statistics;  // the core's counts, without the port's counts
  [[nodiscard]] PortCounts port_counts() const noexcept { return port_ ? port_->counts() : PortCounts{}; }

  /// The time of the next turn that is needed even if no packet comes; max: none.
  [[nodiscard]] TimePoint next_deadline() const noexcept;

 private:
  friend class turn::Engine<PacketCore>;
  // ---- Calls of the engine
  void begin_poll(bool waits);
  [[nodiscard]] bool idle() const noexcept {
    return due_.empty() && dirty_.empty() && !has_posted() && !more_to_receive_ &&
           std::ranges::all_of(driven_, [](const auto& other) { return other->idle(); });
  }
  turn::Looked look(bool spins);
  turn::Looked sleep(TimePoint now, TimePoint until);
  [[nodiscard]] TimePoint time() const { return time_(); }
  void wake() noexcept {
    if (port_) port_->wake();
  }

  void turn();
  [[nodiscard]] bool can_listen(const Endpoint& at) const;
  void turn_driven();
  void watch_driven();
  [[nodiscard]] TimePoint first_deadline() const noexcept;
  void look_at_clock();
  bool receive_packets();
  void take_packet(const ReceivedPacket& packet);
  void take_control(const ReceivedPacket& packet, const PacketHeader& header);
  void take_refusal(const ReceivedPacket& packet);
  void take_reset(const PacketHeader& header);
  void take_close(const ReceivedPacket& packet, const PacketHeader& header);
  void take_open(const ReceivedPacket& packet, const PacketHeader& header);
  /// Finds the secret for a sealed open, and puts it into `link`; otherwise returns the reason for a refusal.
  [[nodiscard]] RefuseReason check_seal(const ReceivedPacket& packet, const PacketHeader& header,
                                        const Handshake& handshake, std::optional<LinkKeys::Link>& link);
  void displace(std::uint64_t id);
  void accept(const PacketAddress& from, const Handshake& handshake, const std::optional<LinkKeys::Link>& link);
  void put_control(const PacketAddress& to, std::span<const std::byte> bytes);
  void flush();
  void send_reset(const ReceivedPacket& packet, const PacketHeader& header);
  [[nodiscard]] std::uint64_t cookie_for(const PacketAddress& from, const Handshake& handshake,
                                         std::uint64_t epoch) const;
  [[nodiscard]] std::uint64_t cookie_epoch() const noexcept;
  void run_expired();
  void transmit();
  void push_deadline(std::uint64_t id, TimePoint at);
  void wait_for_packets(Duration limit);
  void linger();

  using Table = ConnectionTable<PacketConnection>;
  static constexpr std::size_t kBurst = 32;

  const PacketTransport::OpenPort open_;
  const PacketSettings settings_;
  const PacketTransport::Time time_;
  std::unique_ptr<PacketPort> port_;
  std::vector<std::shared_ptr<PacketCore>> driven_;
  std::optional<Endpoint> listening_;
  Acceptor* acceptor_ = nullptr;
  PacketTransport::Route route_;
  ChunkPool pool_;
  turn::DueList<PacketConnection*, &TurnMarks::touched> touched_;
  IdSource ids_;
  Table connections_;
  HalfOpen half_open_;
  HalfOpen departing_;
  turn::DeadlineHeap deadlines_;
  turn::DueList<ConnectionPtr, &TurnMarks::due> due_;
  turn::DueList<PacketConnection*, &TurnMarks::dirty> dirty_;  // departing connections stay until the turn has sent
  std::vector<ReceivedPacket> burst_;
  SealedRoom sealed_;
  const ReceivedPacket* being_read_ = nullptr;
  Endings endings_;
  TimePoint now_;
  TimePoint attended_{};  // time of this thread's last turn
  TimePoint resets_from_{};
  std::uint32_t resets_ = 0;  // number of resets sent in this second
  bool control_sent_ = false;
  bool more_to_receive_ = false;  // the last look may have left packets; true before the first look
  bool ending_ = false;
  Resolver resolver_;  // declared last, because its thread calls post()
};

}  // namespace tributary::transport::packet
