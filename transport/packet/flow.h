#pragma once
// One connection's stream in both directions, as a state machine that gets packets and times, and gives the packets to
// send. It has no socket and no clock of its own. It promises that every queued byte arrives once and in order, even if
// packets are lost, repeated, overtaken or damaged on the way. If it cannot keep this promise, it says within
// `peer_timeout` that the other side is gone.
//
// Sending. Each packet has a number that no other packet of the connection has, so that an acknowledgement names
// exactly one packet, and a round trip is never measured wrongly. An acknowledgement has the offset below which all
// bytes have come, the latest packet's number, and a bitmap of the 64 numbers before it. A packet is given up when
// three later packets have come, or a packet that was sent some time later (as in RFC 8985 and RFC 9002). Where packets
// overtake each other, this takes more packets and a longer time. The packet's range of the stream is then sent again
// under a new number. If no packet comes for a time-out (RFC 6298, doubled each time), the oldest range is sent again.
// After a second time-out all ranges are sent again. From then on each time-out sends two packets, so that one lost
// packet does not cost another, doubled time-out (RFC 9002, section 6.2.4).
//
// Receiving. Bytes in order go directly to the reader. The receiver gives the sender credit; a reader that stops
// (NotYet) stops the sender, and a sender without credit asks for credit by pings.
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

/// The receiver of the packets that a flow sends.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  /// Sends one packet. `head` has room for the header at its beginning. The sink uses or copies both parts before it
  /// returns. Returns false if the port is full.
  virtual bool send_packet(const DataHeader& header, std::span<std::byte> head, std::span<const std::byte> rest) = 0;
  /// Sends a frame that is a packet's whole payload. Call it only if the flow's `reserved_bytes` are 0.
  virtual bool send_frame(const DataHeader& header, const WholeFrame& frame);
};

/// A packet that has come for this flow.
struct Arrival {
  const PacketHeader& header;  // a reference: a copy of a header that was just written would be slow
  std::span<const std::byte> payload;
  bool marked = false;
  TimePoint at{};  // time when it came to this host
};

class Flow {
 public:
  Flow(const PacketSettings& settings, ChunkPool& pool, PacketStatistics& statistics);

  /// Takes the handshake's results: the other side's first credit, in bytes of the stream, and the length of its
  /// longest datagram. `reserved_bytes`: room that the sink needs behind each header.
  void open(std::uint64_t peer_connection, std::uint64_t credit, std::size_t datagram_bytes, std::size_t reserved_bytes,
            TimePoint now);
  [[nodiscard]] std::uint64_t peer_connection() const noexcept { return peer_connection_; }

  [[nodiscard]] SendStream& frames() noexcept { return frames_; }
  /// Notes that no more frames will be queued; the other side is told where the stream ends.
  void finish() noexcept { finishing_ = true; }
  /// Asks the other side for a sign of life, which is the handshake's last step.
  void ping() noexcept { ping_wanted_ = true; }
  /// True if the other side has acknowledged all queued frames and the stream's end.
  [[nodiscard]] bool finished() const noexcept { return finish_acknowledged_; }
  /// Sends the packets that may be sent now, at most `packets_max`. Returns true if more could be sent now.
  bool transmit(PacketSink& sink, std::size_t packets_max, TimePoint now);

  /// Takes a packet. Returns false if the packet was of no use, because it was repeated, beyond the credit or nonsense.
  bool receive(const Arrival& arrival, StreamReader& reader, TimePoint now);
  /// True if the packet is the next one, brings the next bytes, and has no unusual fields. Then receive() would take
  /// the whole packet, and show the reader exactly its payload.
  [[nodiscard]] bool expects(const Arrival& arrival) const noexcept;
  /// Takes a packet for which expects() was true, as receive() does, but does not show the payload to the
  /// reader.
  void take_expected(const Arrival& arrival, TimePoint now);
  /// Goes on reading, because the reader wants more bytes.
  void read_on(StreamReader& reader) { stream_.read_on(reader); }
  /// True if the other side's stream has ended, and the reader has read the whole stream.
  [[nodiscard]] bool peer_finished() const noexcept { return peer_end_ && stream_.consumed() == *peer_end_; }
  /// True if the other side's stream has ended, and the whole stream has come.
  [[nodiscard]] bool peer_end_known() const noexcept { return peer_end_ && stream_.received() == *peer_end_; }
  /// Sets the bytes that this flow may promise to its peer from now on: its share of the memory.
  void set_window(std::size_t bytes) noexcept { window_ = bytes; }

  /// True if transmit() should be called now.
  [[nodiscard]] bool wants_to_send(TimePoint now) const noexcept;
  /// The time when on_time() must be called; TimePoint::max(): no deadline.
  [[nodiscard]] TimePoint deadline() const noexcept;
  enum class Verdict : std::uint8_t { alive, ask_route, dead };
  /// Does the work that is due if the time of deadline() has come. ask_route: packets may be too long for the path; see
  /// narrow_to().
  Verdict on_time(TimePoint now);
  /// Limits datagrams to this length, because the path carries no longer ones. After a while the flow tries longer
  /// datagrams again.
  void narrow_to(std::size_t bytes, TimePoint now) noexcept;
  [[nodiscard]] std::size_t datagram_bytes() const noexcept { return datagram_bytes_; }
  /// Says that this thread did not look at the network for this time, which therefore is no silence of the other side.
  void excuse(Duration absence) noexcept;
  /// Gives all memory back; from here on the flow neither sends nor receives.
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
  std::size_t datagram_bytes_ = kDatagramBytesMin;  // length of a packet at present
  std::size_t head_bytes_ = kPacketHeaderBytes;     // bytes of a packet before its payload
  bool open_ = false;

  // State of sending
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
  std::uint64_t next_offset_ = 0;  // offset of the first byte that was never sent
  std::uint64_t credit_ = 0;       // bytes below this offset may be sent
  std::uint64_t largest_acknowledged_ = 0;
  struct Told {  // a packet's statement about this side's stream
    std::uint64_t bitmap = 0;
    std::uint32_t received = 0, credit = 0, largest = 0, marked = 0;
  };
  std::optional<Told> told_last_;             // the statement of the latest packet with an acknowledgement
  std::optional<std::uint64_t> latest_told_;  // the packet number in the latest acknowledgement
  std::uint64_t bitmap_told_ = 0;             // the bitmap in the latest acknowledgement
  std::uint32_t peer_marked_ = 0;
  std::uint32_t reorder_packets_ = 3;
  std::uint32_t reorder_share_ = 1;  // extra time before a packet counts as lost, in eighths of a round trip
  TimePoint lost_at_{};              // time when the next late packet counts as lost; max: none
  TimePoint last_asked_{};           // time when this side last sent a packet that must be answered
  TimePoint next_paced_{};
  std::uint32_t backoff_ = 0;
  bool window_limited_ = false;
  bool finishing_ = false;
  bool finish_sent_ = false;
  bool finish_acknowledged_ = false;
  bool ping_wanted_ = false;
  std::uint32_t probes_wanted_ = 0;  // packets to send now, even if the window is full
  TimePoint ask_credit_at_ = TimePoint::max();
  std::uint32_t credit_asked_ = 0;                        // times in a row that this side has asked for credit
  TimePoint waiting_since_{};                             // start of this side's wait for an answer or a sign of life
  std::uint32_t large_silent_ = 0;                        // times in a row that only a small packet arrived
  TimePoint small_until_{};                               // time until which the path counts as narrow
  std::size_t datagram_bytes_route_ = kDatagramBytesMin;  // length of a datagram that the route should carry
  double fresh_packets_ = 0;                              // number of packets that the present packet acknowledges
  std::optional<Duration> fresh_delay_;
  double fresh_lost_ = 0;

  // State of receiving
  ReceiveStream stream_;
  ReceivedNumbers numbers_;
  std::optional<std::uint64_t> peer_end_;
  std::size_t window_;
  std::uint64_t credit_given_ = 0;  // the other side may send bytes below this offset
  std::uint32_t marked_ = 0;
  std::uint32_t unacknowledged_ = 0;  // packets that have come since the last acknowledgement was sent
  bool acknowledge_now_ = false;
  TimePoint acknowledge_at_ = TimePoint::max();
  TimePoint largest_came_{};
  TimePoint last_heard_{};
  DataHeader header_;  // header of the packets that transmit() sends
  alignas(64) std::array<std::byte, kCopiedBytesMax + kPacketHeaderBytes> head_;
};

}  // namespace tributary::transport::packet
