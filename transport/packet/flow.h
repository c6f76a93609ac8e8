#pragma once
// One connection's stream in both directions, as a state machine: it is given packets and times, and says what to send.
// No socket, no clock of its own. What it promises: every byte that was queued arrives once and in order, whatever is
// lost, repeated, overtaken or damaged on the way, or it says within `peer_timeout` that the other side is gone.
//
// Sending. Each packet has a number that no other packet of the connection has, so that an acknowledgement says which
// one came, and a round trip is never measured wrongly. What is acknowledged: one offset below which all bytes have
// come, the latest packet's number, and a bitmap of the 64 before it. A packet is given up when three later ones came,
// or one that was sent some time later (as RFC 8985 and RFC 9002 do), more of both where packets overtake each other;
// its range of the stream is sent again under a new number. When nothing is heard for a time-out (RFC 6298, doubled
// each time), the oldest range is sent again; when nothing is heard twice, all ranges, and from then on two packets at
// each time-out, so that one that is lost does not cost another, doubled time-out (RFC 9002, section 6.2.4).
//
// Receiving. Bytes in order go straight to the reader. The receiver says how far the sender may go; a reader that stops
// (NotYet) stops the sender, and a sender without credit asks by pings whether there is some.
#include <array>
#include <optional>

#include "transport/packet/congestion.h"
#include "transport/packet/receive_stream.h"
#include "transport/packet/received_numbers.h"
#include "transport/packet/round_trip.h"
#include "transport/packet/send_stream.h"
#include "transport/packet/sent_packets.h"
#include "transport/packet/settings.h"
#include "transport/packet/wire.h"

namespace tributary::transport::packet {

/// Where a flow's packets go.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  /// False: no more can go now. Both parts are used before this returns, or copied.
  /// `head` has room for the header at its beginning.
  virtual bool send_packet(const DataHeader& header, std::span<std::byte> head, std::span<const std::byte> rest) = 0;
  /// The same for a frame that is a packet's whole payload, where nothing is reserved behind headers.
  virtual bool send_frame(const DataHeader& header, const WholeFrame& frame);
};

/// A packet that has come and is for this flow.
struct Arrival {
  const PacketHeader& header;  // where it was read: copied soon after it would wait for its own stores
  std::span<const std::byte> payload;
  bool marked = false;
  TimePoint at{};  // when it came to this host
};

class Flow {
 public:
  Flow(const PacketSettings& settings, ChunkPool& pool, PacketStatistics& statistics);

  /// Takes what the handshake has told: bytes of stream that the other side takes, and of a datagram that goes there.
  /// `reserved_bytes`: room that the sink wants behind each header.
  void open(std::uint64_t peer_connection, std::uint64_t credit, std::size_t datagram_bytes, std::size_t reserved_bytes,
            TimePoint now);
  [[nodiscard]] std::uint64_t peer_connection() const noexcept { return peer_connection_; }

  [[nodiscard]] SendStream& frames() noexcept { return frames_; }
  /// Nothing more will be queued: the other side is told where the stream ends.
  void finish() noexcept { finishing_ = true; }
  /// Asks the other side for a sign of life: the handshake's last step.
  void ping() noexcept { ping_wanted_ = true; }
  /// All that was queued, and the end, are with the other side.
  [[nodiscard]] bool finished() const noexcept { return finish_acknowledged_; }
  /// Sends what may be sent, `packets_max` at most. True: more could go at once.
  bool transmit(PacketSink& sink, std::size_t packets_max, TimePoint now);

  /// False: it was for nothing (a repeat, beyond the credit, or nonsense).
  bool receive(const Arrival& arrival, StreamReader& reader, TimePoint now);
  /// It is the next packet, brings the next bytes, and says nothing unusual: receive() would take all of it, and show
  /// the reader its payload and nothing else.
  [[nodiscard]] bool expects(const Arrival& arrival) const noexcept;
  /// Does what receive() does besides that, for a packet that it expects().
  void take_expected(const Arrival& arrival, TimePoint now);
  /// The reader wants more.
  void read_on(StreamReader& reader) { stream_.read_on(reader); }
  /// The other side's stream has ended, and all of it was read.
  [[nodiscard]] bool peer_finished() const noexcept { return peer_end_ && stream_.consumed() == *peer_end_; }
  /// It has ended, and all of it is here.
  [[nodiscard]] bool peer_end_known() const noexcept { return peer_end_ && stream_.received() == *peer_end_; }
  /// The share of the memory for received bytes that this flow may promise to its peer from now on.
  void set_window(std::size_t bytes) noexcept { window_ = bytes; }

  /// transmit() should be called now.
  [[nodiscard]] bool wants_to_send(TimePoint now) const noexcept;
  /// TimePoint::max(): none.
  [[nodiscard]] TimePoint deadline() const noexcept;
  enum class Verdict : std::uint8_t { alive, ask_route, dead };
  /// The time of deadline() may have come. ask_route: packets may be too long for the way; narrow_to().
  Verdict on_time(TimePoint now);
  /// The way carries datagrams of so many bytes, if that is less than now. After a while longer ones are tried again.
  void narrow_to(std::size_t bytes, TimePoint now) noexcept;
  [[nodiscard]] std::size_t datagram_bytes() const noexcept { return datagram_bytes_; }
  /// This thread did not come to look for so long: that is not the other side's silence.
  void excuse(Duration absence) noexcept;
  /// Gives all memory back; nothing is sent or received any more.
  void clear() noexcept;

  [[nodiscard]] const RoundTrip& round_trip() const noexcept { return round_trip_; }
  [[nodiscard]] const Congestion& congestion() const noexcept { return congestion_; }

 private:
  // flow_receive.cc
  [[nodiscard]] bool sensible(const PacketHeader& header) const noexcept;
  void note_number(const Arrival& arrival) noexcept;
  [[nodiscard]] bool tells_nothing_new(const PacketHeader& header) noexcept;
  void take_acknowledgement(const Arrival& arrival, TimePoint now);
  void acknowledge_numbers(std::uint64_t largest, std::uint64_t bitmap);
  void acknowledge_number(std::uint64_t number);
  void acknowledge_below(std::uint64_t received);
  void find_lost(TimePoint now);
  void give_up(SentPacket& packet, std::uint64_t number);
  void note_arrival(const Arrival& arrival, bool in_sequence, TimePoint now);

  // flow_send_frames.cc
  [[nodiscard]] bool sends_plainly() const noexcept;
  std::size_t send_frames(PacketSink& sink, std::size_t packets_max, TimePoint now);

  // flow_send.cc
  enum class Sent : std::uint8_t { yes, nothing_to_send, port_full };
  Sent send_again(PacketSink& sink, std::size_t bytes_max, TimePoint now);
  Sent send_new(PacketSink& sink, TimePoint now);
  Sent send_range(PacketSink& sink, std::uint64_t offset, std::size_t bytes_max, bool fin, TimePoint now);
  Sent send_plain(PacketSink& sink, std::uint16_t flags, TimePoint now);
  Sent send_one(PacketSink& sink, TimePoint now);
  [[nodiscard]] DataHeader told(TimePoint now) const noexcept;
  void sent(std::uint64_t offset, std::uint32_t bytes, bool fin, bool asks, TimePoint now);
  void note_asked(TimePoint now) noexcept;
  void note_told() noexcept;
  [[nodiscard]] std::size_t payload_bytes_max() const noexcept { return datagram_bytes_ - head_bytes_; }
  [[nodiscard]] bool window_open(TimePoint now) const noexcept;
  [[nodiscard]] bool has_new() const noexcept;
  [[nodiscard]] bool credit_blocked() const noexcept { return next_offset_ < frames_.end() && next_offset_ >= credit_; }
  [[nodiscard]] std::uint64_t credit_to_give() const noexcept;
  [[nodiscard]] bool credit_news() const noexcept;
  void drop_stale_lost() noexcept;
  void time_out(TimePoint now);
  void note_credit_blocked(TimePoint now) noexcept;
  [[nodiscard]] TimePoint times_out_at() const noexcept;

  const PacketSettings& settings_;
  PacketStatistics& statistics_;
  std::uint64_t peer_connection_ = 0;
  std::size_t datagram_bytes_ = kDatagramBytesMin;  // now
  std::size_t head_bytes_ = kPacketHeaderBytes;     // of a packet, before its payload
  bool open_ = false;

  // sending
  struct LostRange {
    std::uint64_t number;
    std::uint64_t offset;
    std::uint32_t bytes;
    bool fin;
  };
  SendStream frames_;
  SentPackets sent_;
  Ring<LostRange> lost_;
  RoundTrip round_trip_;
  Congestion congestion_;
  std::uint64_t next_offset_ = 0;  // of what was never sent
  std::uint64_t credit_ = 0;       // sending may go so far
  std::uint64_t largest_acknowledged_ = 0;
  struct Told {  // what a packet says of our stream
    std::uint64_t bitmap = 0;
    std::uint32_t received = 0, credit = 0, largest = 0, marked = 0;
  };
  std::optional<Told> told_last_;             // by the latest packet that said something
  std::optional<std::uint64_t> latest_told_;  // of the latest acknowledgement: the number,
  std::uint64_t bitmap_told_ = 0;             // and the bits
  std::uint32_t peer_marked_ = 0;
  std::uint32_t reorder_packets_ = 3;
  std::uint32_t reorder_share_ = 1;  // eighths of a round trip
  TimePoint lost_at_{};              // then a packet that came late so far counts as lost; max: none
  TimePoint last_asked_{};           // when something was sent that must be answered
  TimePoint next_paced_{};
  std::uint32_t backoff_ = 0;
  bool window_limited_ = false;
  bool finishing_ = false;
  bool finish_sent_ = false;
  bool finish_acknowledged_ = false;
  bool ping_wanted_ = false;
  std::uint32_t probes_wanted_ = 0;  // packets that go now whatever the window says
  TimePoint ask_credit_at_ = TimePoint::max();
  std::uint32_t credit_asked_ = 0;                        // times in a row
  TimePoint waiting_since_{};                             // for an answer, or a sign of life
  std::uint32_t large_silent_ = 0;                        // times in a row that only a small packet came through
  TimePoint small_until_{};                               // as the path seems to swallow large packets, or carries less
  std::size_t datagram_bytes_route_ = kDatagramBytesMin;  // what the path should carry
  double fresh_packets_ = 0;                              // acknowledged by the packet that is being taken
  std::optional<Duration> fresh_delay_;
  double fresh_lost_ = 0;

  // receiving
  ReceiveStream stream_;
  ReceivedNumbers numbers_;
  std::optional<std::uint64_t> peer_end_;
  std::size_t window_;
  std::uint64_t credit_given_ = 0;  // the other side may go so far
  std::uint32_t marked_ = 0;
  std::uint32_t unacknowledged_ = 0;  // packets that have come since we last said so
  bool acknowledge_now_ = false;
  TimePoint acknowledge_at_ = TimePoint::max();
  TimePoint largest_came_{};
  TimePoint last_heard_{};
  DataHeader header_;  // of the packets that transmit() sends
  alignas(64) std::array<std::byte, kCopiedBytesMax + kPacketHeaderBytes> head_;
};

}  // namespace tributary::transport::packet
