#pragma once
// Stands between a channel and its handler: it is a Channel for the handler, and a ChannelHandler for the channel.
#include <memory>
#include <vector>

#include "transport/sim/fault/fault_core.h"

namespace tributary::transport {

class FaultyChannel final : public Channel, public ChannelHandler {
 public:
  explicit FaultyChannel(std::shared_ptr<FaultCore> core) : core_(std::move(core)) {}
  ~FaultyChannel() override;
  FaultyChannel(const FaultyChannel&) = delete;
  FaultyChannel& operator=(const FaultyChannel&) = delete;

  void set_inner(std::unique_ptr<Channel> inner) { inner_ = std::move(inner); }
  void set_handler(ChannelHandler* handler) { handler_ = handler; }
  /// Goes on with the frame, because its delay or hold is over.
  void go_on();

  // ---- Calls of Channel
  bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) override;
  void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override;
  void resume() override { inner_->resume(); }
  void close() override { inner_->close(); }
  void close_after_flush(Duration limit) override { inner_->close_after_flush(limit); }
  bool closed() const noexcept override { return inner_->closed(); }
  bool shares_memory() const noexcept override { return inner_->shares_memory(); }
  std::string peer() const override { return inner_->peer(); }

  // ---- Calls of ChannelHandler
  void on_open(Channel&) override { handler_->on_open(*this); }
  Placement on_header(Channel&, const FrameHeader& header) override;
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_sent(Channel&, std::uint64_t cookie) override;
  void on_closed(Channel&, const Error& error) override { handler_->on_closed(*this, error); }

 private:
  [[nodiscard]] bool stop_here(FrameType type);
  struct Outgoing {
    bool corrupt = false;
    bool duplicate = false;
  };
  [[nodiscard]] Outgoing draw(FrameType type);
  [[nodiscard]] FrameHeader corrupted(const FrameHeader& header);
  void cut(std::span<const std::byte> payload);

  std::shared_ptr<FaultCore> core_;
  ChannelHandler* handler_ = nullptr;
  bool drawn_ = false;    // the faults of the next frame were drawn
  bool waiting_ = false;  // the frame is delayed or held
  bool cutting_ = false;
  std::span<std::byte> destination_;  // the user's place for the payload that will be cut
  std::vector<std::byte> scratch_;    // place to which this payload is read instead
  std::uint64_t unsent_ = 0;          // calls of send() without on_sent
  std::optional<Outgoing> outgoing_;  // faults drawn for a frame that the inner channel has not taken yet
  std::unique_ptr<Channel> inner_;    // destroyed first
};

}  // namespace tributary::transport
