#pragma once
// One ordered channel to one other rank. What is received is posted beforehand, in the order in which the other side
// sends; a frame that comes earlier than its receive waits in the network, so a fast rank is held back by flow control,
// not by memory.
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tributary/transport/channel.h"

namespace tributary::client {

/// Channels of one pair that must not wait for each other: collectives run in the order of calls, messages in the order
/// of each pair's calls, repairs whenever a tree is lost.
enum class PeerClass : std::uint8_t { collective = 0, message = 1, repair = 2 };
inline constexpr std::size_t kPeerClasses = 3;
[[nodiscard]] std::string_view to_string(PeerClass peer_class) noexcept;

/// Most bytes of one frame between ranks: one staging buffer of this size a link is enough.
inline constexpr std::uint32_t kPieceBytes = 1U << 18;
static_assert(kPieceBytes <= kPeerBytesMax);

/// Exactly one frame.
struct PostedReceive {
  FrameType type = FrameType::peer_data;
  std::uint64_t operation = 0;
  std::uint64_t tag = 0;  // FrameHeader::sequence
  Signature signature;
  std::uint32_t bytes = 0;
  std::byte* into = nullptr;  // nullptr: into the link's staging buffer, valid during the callback
  std::uint64_t cookie = 0;   // the poster's
};

class PeerLink;

class PeerLinkUser {
 public:
  virtual ~PeerLinkUser() = default;
  virtual void peer_received(std::uint32_t peer, PeerClass peer_class, const PostedReceive& receive,
                             std::span<std::byte> payload) = 0;
  virtual void peer_sent(std::uint32_t peer, PeerClass peer_class, std::uint64_t cookie) = 0;
  /// The channel is broken or could not be made.
  virtual void peer_failed(std::uint32_t peer, PeerClass peer_class, const std::string& reason) = 0;
  /// What arrived is not what was posted: the two ranks called different things.
  virtual void peer_mismatch(std::uint32_t peer, PeerClass peer_class, const PostedReceive& expected,
                             const FrameHeader& arrived) = 0;
};

class PeerLink final : public transport::ChannelHandler {
 public:
  PeerLink(PeerLinkUser& user, std::uint32_t peer, PeerClass peer_class)
      : user_(user), peer_(peer), class_(peer_class) {}

  /// The connecting side; `introduce` answers the other side's challenge (its payload) with the payload of a
  /// peer_hello.
  void connect(transport::Transport& transport, const Endpoint& to, transport::Duration limit,
               std::function<std::string(std::string_view)> introduce);
  /// The accepting side, once the other has proved who it is.
  void adopt(std::unique_ptr<transport::Channel> channel);

  void post(const PostedReceive& receive);
  /// `payload` is borrowed until peer_sent(cookie).
  void send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie);
  void close();
  [[nodiscard]] bool connected() const noexcept { return open_; }
  [[nodiscard]] bool shares_memory() const noexcept { return channel_ != nullptr && channel_->shares_memory(); }
  /// The frame that waits in the network until its receive is posted.
  [[nodiscard]] const std::optional<FrameHeader>& held_back() const noexcept { return held_back_; }
  [[nodiscard]] std::size_t receives_posted() const noexcept { return posted_.size(); }

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_sent(transport::Channel& channel, std::uint64_t cookie) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  struct Pending {
    FrameHeader header;
    std::span<const std::byte> payload;
    std::uint64_t cookie;
  };
  void flush();

  PeerLinkUser& user_;
  const std::uint32_t peer_;
  const PeerClass class_;
  std::function<std::string(std::string_view)> introduce_;
  std::vector<std::byte> text_;
  std::vector<std::byte> staging_;
  std::deque<PostedReceive> posted_;
  std::deque<Pending> pending_;
  bool open_ = false;                     // past the challenge
  std::optional<FrameHeader> held_back_;  // told the channel NotYet
  bool mismatched_ = false;
  bool closed_ = false;
  std::unique_ptr<transport::Channel> channel_;
};

}  // namespace tributary::client
