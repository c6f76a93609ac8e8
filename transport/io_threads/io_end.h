#pragma once
// The I/O thread's end of a channel: it carries out the user's commands on the inner transport's channel, and reports
// frames and other events. A frame whose header the user has announced lands without a question; for every other frame
// the channel stops until the user has said where the payload goes.
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "transport/io_threads/exchange.h"
#include "tributary/transport/channel.h"

namespace tributary::transport::io_threads {

class IoThread;

class IoEnd final : public ChannelHandler {
 public:
  IoEnd(IoThread& thread, Key key) : thread_(thread), key_(key) {}

  /// Sets the inner channel, whose handler this is.
  void use(std::unique_ptr<Channel> channel) { channel_ = std::move(channel); }
  /// Reports that the channel is open. Called for a channel that was taken over.
  void report_open();
  void carry_out(Command& command);
  /// Reports the end of a flush once. Returns whether the channel still flushes.
  [[nodiscard]] bool still_flushes();

  std::size_t number = 0;  // index in the thread's table

  void on_open(Channel& channel) override;
  Placement on_header(Channel& channel, const FrameHeader& header) override;
  void on_frame(Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_sent(Channel& channel, std::uint64_t cookie) override;
  void on_closed(Channel& channel, const Error& error) override;

 private:
  struct Expected {
    FrameHeader header;
    std::span<std::byte> place;
  };
  [[nodiscard]] std::optional<std::span<std::byte>> take_expected(const FrameHeader& header);
  void answer(Placement placement);

  IoThread& thread_;
  const Key key_;
  std::unique_ptr<Channel> channel_;
  // Queue of announced frames: entries before `first_` are used up.
  std::vector<Expected> expected_;
  std::size_t first_ = 0;
  bool asked_ = false;               // the user was asked where the payload of the next frame goes
  std::optional<Placement> answer_;  // the user's answer, until the channel shows the header again
  bool was_announced_ = false;       // the user had announced the frame that is under way
  bool flushing_ = false;
};

}  // namespace tributary::transport::io_threads
