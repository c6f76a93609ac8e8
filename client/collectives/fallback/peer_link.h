#pragma once
// An ordered connection for frames to one other rank. This rank posts receives beforehand, in the order in which the
// other side sends. A frame that comes before its receive waits in the network, so flow control slows a fast rank down,
// and no memory fills.
//
// If the transport has a second way (tributary/transport/second_way.h), the channel may break once, and a second
// channel then takes over. Every posted receive takes exactly one frame, and each side counts the frames that it has
// taken. When the two sides make the second channel, they exchange their counts, and each side sends again the frames
// that the other side has not taken. A half-filled receive is filled again.
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/fallback/sent_frames.h"
#include "client/control/mutual_proof.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

/// Channels of one pair of ranks that must not wait for each other. Collectives run in the order of calls, messages in
/// the order of each pair's calls, and repairs whenever a tree is lost. Messages with tags run in the order in which
/// their receivers ask for them. Shares are the ranks' parts of split operations: they do not wait for the rest of an
/// earlier operation whose tree was lost.
enum class PeerClass : std::uint8_t { collective = 0, message = 1, repair = 2, tagged = 3, share = 4 };
inline constexpr std::size_t kPeerClasses = 5;
[[nodiscard]] std::string_view to_string(PeerClass peer_class) noexcept;

/// The most bytes of a frame between ranks, so that one staging buffer of this size is enough for a link.
inline constexpr std::uint32_t kPieceBytes = 1U << 18;
static_assert(kPieceBytes <= kPeerBytesMax);

/// A receive of exactly one frame.
struct PostedReceive {
  FrameType type = FrameType::peer_data;
  std::uint64_t operation = 0;
  std::uint64_t tag = 0;  // FrameHeader::sequence
  Signature signature;
  std::uint32_t bytes = 0;
  std::uint32_t form_elements = 0;  // not 0: a form (kernels/partial_sum.h) of so many elements, at most `bytes` long
  std::byte* into = nullptr;        // nullptr: the link's staging buffer, valid during the callback
  std::uint64_t cookie = 0;         // chosen by the poster
};

class PeerLink;

class PeerLinkUser {
 public:
  virtual ~PeerLinkUser() = default;
  virtual void peer_received(std::uint32_t peer, PeerClass peer_class, const PostedReceive& receive,
                             std::span<std::byte> payload) = 0;
  virtual void peer_sent(std::uint32_t peer, PeerClass peer_class, std::uint64_t cookie) = 0;
  /// A frame has come, and no receive is posted. The frame waits in the network for the next receive, which this
  /// callback may post. Called twice for one frame if the second way takes over between the two calls.
  virtual void peer_waits(std::uint32_t /*peer*/, PeerClass /*peer_class*/) {}
  /// An `offer` or a `want` has come. These frames need no posted receive: the link takes each when it comes, so that
  /// neither direction of this class ever stands still. An error ends the connection.
  virtual Status peer_noted(std::uint32_t /*peer*/, const FrameHeader& /*note*/) { return {}; }
  /// The channel is broken or could not be made, and there is no other way.
  virtual void peer_failed(std::uint32_t peer, PeerClass peer_class, const std::string& reason) = 0;
  /// The frame that arrived does not match the posted receive: the two ranks called different operations.
  virtual void peer_mismatch(std::uint32_t peer, PeerClass peer_class, const PostedReceive& expected,
                             const FrameHeader& arrived) = 0;
  /// All frames to and from that rank use the second way from now on; no frame is lost.
  virtual void peer_goes_second_way(std::uint32_t /*peer*/, const std::string& /*reason*/) {}
};

/// The maker of the second channels.
class FirstWayWatch {
 public:
  virtual ~FirstWayWatch() = default;
  /// A channel of the first way is broken or could not be made.
  virtual void first_way_broken(std::uint32_t peer, const std::string& reason) = 0;
};

class PeerLink final : public transport::ChannelHandler {
 public:
  /// `watch`: nullptr for a transport without a second way; the link then counts and keeps no frames.
  /// `early_bytes_max`: as in HasSecondWay.
  PeerLink(PeerLinkUser& user, std::uint32_t peer, PeerClass peer_class, FirstWayWatch* watch = nullptr,
           std::uint32_t early_bytes_max = 0)
      : user_(user), peer_(peer), class_(peer_class), watch_(watch), sent_(early_bytes_max) {}

  /// One attempt to connect, on the connecting side. Before the other side has proved itself, the link sends no frame
  /// and fills no receive.
  struct Attempt {
    ConnectingProof proof;
    /// Returns the payload of the peer_hello frame that carries this answer.
    std::function<std::string(const ProofAnswer&)> introduce;
    /// Called if the attempt ends before both sides have proved themselves: the caller may then make another attempt.
    std::function<void(const std::string& reason)> failed;
  };
  void connect(transport::Transport& transport, const Endpoint& to, transport::Duration limit, Attempt attempt);
  /// Takes over an accepted channel, once the other side has proved its rank and told how many frames it has taken.
  void adopt(std::unique_ptr<transport::Channel> channel, std::uint64_t taken_there = 0);
  /// Closes the first channel, if there is one. The next connect() or adopt() makes the second channel. If there was a
  /// first channel, the link waits for the second channel until `until`.
  void leave_first_way(transport::TimePoint until, const std::string& reason);
  /// Ends the link with an error if the second channel has not come in time.
  void look_for_second(transport::TimePoint now);
  /// Extends the limit for the second channel by `absence`, the time for which this process was away.
  void excuse(transport::Duration absence) noexcept;

  void post(const PostedReceive& receive);
  /// `payload` is borrowed until peer_sent(cookie).
  void send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie);
  void close();
  [[nodiscard]] bool connected() const noexcept { return open_; }
  /// Returns whether the link has a connection, or is making one.
  [[nodiscard]] bool has_channel() const noexcept { return channel_ != nullptr; }
  [[nodiscard]] bool on_second_way() const noexcept { return second_; }
  /// Returns how many frames this side has taken on the first way.
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }
  [[nodiscard]] bool shares_memory() const noexcept { return channel_ != nullptr && channel_->shares_memory(); }
  /// Returns the frame that waits in the network until its receive is posted.
  [[nodiscard]] const std::optional<FrameHeader>& held_back() const noexcept { return held_back_; }
  [[nodiscard]] std::size_t receives_posted() const noexcept { return posted_.size(); }

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_sent(transport::Channel& channel, std::uint64_t cookie) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  /// Returns true if another channel may take over from this channel; its frames are then counted and kept.
  [[nodiscard]] bool may_go_on() const noexcept { return watch_ != nullptr && !second_; }
  [[nodiscard]] bool hears_taken(const FrameHeader& header);
  [[nodiscard]] bool is_note(const FrameHeader& header) const noexcept;
  void go_on_from(std::uint64_t taken_there);
  void count_taken();
  void say_taken();
  void on_proof_frame(transport::Channel& channel, std::string_view text);
  void broken(const std::string& reason);
  void fail(const std::string& reason);
  void flush();

  PeerLinkUser& user_;
  const std::uint32_t peer_;
  const PeerClass class_;
  FirstWayWatch* const watch_;
  std::optional<Attempt> attempt_;  // the attempt to connect that is under way
  std::vector<std::byte> text_;
  std::vector<std::byte> staging_;
  std::deque<PostedReceive> posted_;
  std::deque<PeerFrame> pending_;
  SentFrames sent_;                       // frames sent on the first way
  std::uint64_t taken_ = 0;               // how many of the other side's frames were taken on the first way
  std::uint64_t taken_told_ = 0;          // the value of taken_ that was last sent to the other side
  bool open_ = false;                     // both sides have proved themselves and know which frame comes next
  std::optional<FrameHeader> held_back_;  // the frame for which on_header() answered NotYet
  bool mismatched_ = false;
  bool closed_ = false;
  bool second_ = false;  // channel_ uses, or will use, the second way
  transport::TimePoint second_until_ = transport::TimePoint::max();
  std::string why_second_;
  std::unique_ptr<transport::Channel> first_;  // the closed channel of the first way, which may be in a callback
  std::unique_ptr<transport::Channel> channel_;
};

}  // namespace tributary::client
