#pragma once
// A transport whose user obeys the protocol and knows all secrets, but which changes the user's frames on their way
// out: as the input says, it alters, loses, repeats or invents frames. All frames that it sends pass every reader of
// headers.
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tests/fuzz/transport/script.h"
#include "tributary/transport/channel.h"

namespace tributary::fuzz {

struct Frame {
  FrameHeader header;
  std::vector<std::byte> payload;
};

/// Replaces true frames by lies.
class Liar {
 public:
  /// `about` chooses the types of the frames to replace.
  Liar(Script& script, std::function<bool(FrameType)> about) : script_(script), about_(std::move(about)) {}
  /// Returns the frames to send instead of the true frame; nullopt: send it unchanged. If `needed`, returns at least
  /// one frame; the last of them replaces the true frame.
  [[nodiscard]] std::optional<std::vector<Frame>> instead_of(const FrameHeader& header,
                                                             std::span<const std::byte> payload, bool needed);

 private:
  [[nodiscard]] Frame changed_header(Frame frame);
  [[nodiscard]] Frame changed_payload(Frame frame);
  /// Changes one of the values of a JSON body.
  [[nodiscard]] Frame changed_value(Frame frame);
  [[nodiscard]] Frame made_up();
  [[nodiscard]] const Frame& old() { return said_[script_.byte() % said_.size()]; }

  Script& script_;
  std::function<bool(FrameType)> about_;
  std::array<Frame, 8> said_;  // the latest true frames
  std::size_t count_ = 0;
};

class LyingTransport final : public transport::Transport {
 public:
  LyingTransport(transport::Transport& inner, Liar& liar) : inner_(inner), liar_(liar) {}
  [[nodiscard]] Result<std::unique_ptr<transport::Listener>> listen(const Endpoint& at,
                                                                    transport::Acceptor& acceptor) override;
  [[nodiscard]] std::unique_ptr<transport::Channel> connect(const Endpoint& to, transport::ChannelHandler& handler,
                                                            transport::Duration limit) override;
  std::size_t poll(transport::Duration wait) override { return inner_.poll(wait); }
  [[nodiscard]] transport::TimePoint now() const override { return inner_.now(); }
  void post(std::function<void()> call) override { inner_.post(std::move(call)); }

 private:
  transport::Transport& inner_;
  Liar& liar_;
};

}  // namespace tributary::fuzz
