#pragma once
// One connection through shared memory: opening (shm_greeting.cc), reading (shm_read.cc), writing (shm_write.cc),
// payloads that are read where they are (shm_regions.cc), ending (shm_connection.cc).
//
//   listener -> connector   Offer, with the memory
//   connector -> listener   mapped
//   listener -> connector   go: no process can change the memory's size or take its pages any more
//
// After that the socket carries only single bytes that wake a sleeper, some of them with a descriptor, and the end.
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/channel/connection.h"
#include "transport/channel/frame_reader.h"
#include "transport/shm/regions_mapped.h"
#include "transport/shm/regions_told.h"
#include "transport/shm/ring_memory.h"
#include "transport/shm/shm_part.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {

class ShmAcceptor;

inline constexpr std::size_t kInPlaceBytesMin = 4096;  // copying a shorter payload is faster than keeping or naming it

/// The ranges of memory that the two sides of a connection lend each other.
struct ShmRegions {
  RegionsTold told;
  RegionsMapped mapped;
  OwnedDescriptor passed;            // descriptor that came with a byte, for the next `told`
  std::optional<RegionLine> answer;  // line that must be written
};

/// An open connection that was taken out of one transport for another.
struct ShmHandOver {
  std::string peer;
  OwnedDescriptor socket;
  std::shared_ptr<RingMemory> memory;
  std::uint64_t written = 0, read = 0, read_seen = 0;
  std::uint32_t naps = 0, rung_for = 0;
  ShmRegions regions;
  std::uint64_t payloads_read = 0, payloads_read_seen = 0;
};

class ShmConnection final : public Connection {
 public:
  /// Called in place of the handler when the connection fails before it is open.
  using Otherwise = std::function<void(ShmConnection&)>;

  static std::shared_ptr<ShmConnection> make(SocketCore& core, std::shared_ptr<ShmPart> part, std::string peer,
                                             ChannelHandler* handler);
  ShmConnection(const ShmConnection&) = delete;
  ShmConnection& operator=(const ShmConnection&) = delete;

  /// Connects to the process that listens at the name.
  void connect(std::string name, Duration limit);
  /// Goes on in the place of another connection, with a socket that a listener has accepted.
  void go_on(OwnedDescriptor socket, Beginning&& beginning, Duration limit, Otherwise otherwise);
  /// Begins the listener's side. `acceptor` gets the connection once both sides have the memory; it outlives the
  /// greeting.
  [[nodiscard]] Status greet(OwnedDescriptor socket, ShmAcceptor& acceptor, Duration limit);
  void open(ShmHandOver&& taken);
  /// Closes silently, so that another connection can take its place. Call it only before the connection is open.
  [[nodiscard]] Beginning hand_on();
  [[nodiscard]] Result<ShmHandOver> release();

  // ---- Calls of the user: they neither call back nor block.
  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) override;
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override;
  void give_back(std::span<const std::byte> payload) override;
  void resume() override;
  void close() override;
  void close_after_flush(Duration limit) override;
  void channel_destroyed() override;
  [[nodiscard]] bool closed() const noexcept override { return state_ == State::closed || withdrawn_seen_; }
  [[nodiscard]] bool shares_memory() const noexcept override { return true; }
  [[nodiscard]] SocketCore& core() const noexcept { return core_; }
  /// Asks for a turn, because the owner has taken back some of this side's memory.
  void look_at_regions() { make_due(); }

  // ---- Calls of the core (Pollable)
  void mark(std::uint32_t events) override;
  void turn() override;
  void write_turn() override;
  void on_deadline() override;
  void shut_down() override { close(); }
  [[nodiscard]] bool memory_changed() const noexcept override;
  void set_asleep(bool asleep) noexcept override;

 private:
  enum class State : std::uint8_t { calling, awaits_offer, awaits_mapped, awaits_go, open, flushing, closed };

  ShmConnection(SocketCore& core, std::shared_ptr<ShmPart> part, std::string peer, ChannelHandler* handler);

  friend class FrameReader;
  // shm_connection.cc
  void count_callback() noexcept { core_.count_callback(); }
  void make_due() { core_.make_due(*this); }
  void tell_closed(Error error);
  void tell_corrupt(std::string_view what);
  void position_cannot_be();
  void turn_open();
  void end_of_peer();
  void drain_bells() noexcept;
  [[nodiscard]] bool serving() const noexcept { return state_ == State::open; }
  [[nodiscard]] bool opening() const noexcept { return state_ < State::open; }
  [[nodiscard]] bool taking_frames() const noexcept { return serving() || (opening() && !detached_); }

  // shm_greeting.cc
  void call();
  void watch_greeting(OwnedDescriptor socket, State state);
  void turn_greeting();
  [[nodiscard]] bool hear(std::size_t bytes, OwnedDescriptor* descriptor = nullptr);
  void take_offer();
  void take_mapped();
  void take_go();
  void start();
  void greeting_failed(const std::string& why, Errc code = Errc::unreachable);

  // shm_read.cc
  void read_turn();
  [[nodiscard]] bool look_for_more();
  bool serve_next(std::size_t& budget);
  enum class InPlace : std::uint8_t { no, not_yet, yes };
  [[nodiscard]] InPlace in_place(const FrameHeader& header);
  bool take_in_place(const FrameHeader& header, std::size_t& budget);
  bool place(const FrameHeader& header);
  bool land(std::size_t& budget);
  bool deliver();
  void publish_read() noexcept;

  // shm_write.cc
  void write_frames();
  [[nodiscard]] bool look_for_room();
  bool write_some(std::size_t& budget);
  void publish_written() noexcept;
  void wait_for_room() noexcept;
  void room_is_enough() noexcept;
  void ring_bell_of(const Side& sleeper) noexcept;
  void tell_sent();
  [[nodiscard]] std::size_t room() const noexcept {
    TRIBUTARY_ASSERT(written_ - read_seen_ <= memory_->ring_bytes(),
                     "{} bytes are written, and {} read, of a ring of {}", written_, read_seen_, memory_->ring_bytes());
    return memory_->ring_bytes() - (written_ - read_seen_);
  }

  // shm_regions.cc
  [[nodiscard]] bool region_words_due() const noexcept {
    return regions_.answer.has_value() || regions_.told.any_withdrawn();
  }
  void write_line(const RegionLine& line) noexcept;
  [[nodiscard]] bool write_region_words() noexcept;
  [[nodiscard]] std::optional<RegionLine> name_payload(const SendQueue::Next& next);
  bool write_named(const RegionLine& line, const SendQueue::Next& next, std::size_t& budget);
  void look_for_payloads_read();
  bool serve_region_line(const RegionLine& line, std::size_t& budget);
  void map_region(const RegionLine& told);
  bool serve_named(const RegionLine& line, std::size_t& budget);
  bool give_back_taken(const std::byte* payload);
  void forget_taken() noexcept;
  void publish_payloads_read() noexcept;

  SocketCore& core_;
  std::shared_ptr<ShmPart> part_;
  PolledSocket socket_;
  std::shared_ptr<RingMemory> memory_;
  State state_ = State::calling;
  bool detached_ = false;  // close_after_flush() was called: no callback follows
  bool hung_up_ = false;   // the other side's socket has ended
  std::uint32_t bells_heard_ = 0;
  std::optional<Error> fatal_;  // error with which on_closed is due

  // State of reading
  bool out_of_turn_ = false;  // the turn's limit was reached, and the next turn reads on
  FrameReader reader_;
  struct Kept {           // a payload that the handler took where it lies
    std::uint64_t begin;  // position of its frame
    const std::byte* payload;
    bool given_back;
  };
  std::vector<Kept> kept_;          // the oldest first; the first is not given back, and holds back the writer
  std::uint64_t read_ = 0;          // position up to which this side has read; the shared memory has a copy only
  std::uint64_t read_told_ = 0;     // the part of the position that was published
  std::uint64_t written_seen_ = 0;  // the other side's position at the last look, checked

  // State of writing
  SendQueue queue_;
  std::uint64_t written_ = 0;       // position up to which this side has written; the shared memory has a copy only
  std::uint64_t written_told_ = 0;  // the part of the position that was published
  std::uint64_t read_seen_ = 0;     // the other side's position at the last look, checked
  bool waits_for_room_ = false;
  std::uint32_t naps_ = 0;      // the value of this side's `asleep`
  std::uint32_t rung_for_ = 0;  // the other side's `asleep` when it was last woken

  // State of payloads that are read where they are
  ShmRegions regions_;
  std::uint64_t sends_written_ = 0;       // number of calls of send(), without calls of send_copy()
  std::uint64_t sends_told_ = 0;          // calls of send() whose on_sent() was called
  std::vector<std::uint64_t> named_;      // numbers of the send() calls whose payload the other side has not read yet
  std::uint64_t payloads_read_seen_ = 0;  // the other side's count at the last look, checked
  struct Taken {                          // a payload in the other side's memory, in the order of the frames
    const std::byte* payload;
    bool given_back;
    RegionsMapped::Mapping keeps;
  };
  std::vector<Taken> taken_;              // the oldest first; the first is not given back
  std::uint64_t payloads_read_ = 0;       // payloads before the oldest of taken_
  std::uint64_t payloads_read_told_ = 0;  // the part of this count that was published
  bool withdrawn_seen_ = false;           // the other side closed while its payload was read: on_closed is due

  // State of opening and ending
  std::string name_;
  TimePoint deadline_ = TimePoint::max();
  Duration limit_{};
  Otherwise otherwise_;
  ShmAcceptor* acceptor_ = nullptr;
  std::array<std::byte, 16> heard_{};
  std::size_t heard_bytes_ = 0;
};

}  // namespace tributary::transport
