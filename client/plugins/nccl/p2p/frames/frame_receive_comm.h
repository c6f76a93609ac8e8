#pragma once
// The receiving end of one connection, over channels of frames.
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/plugins/nccl/p2p/greeting.h"
#include "client/plugins/nccl/p2p/receive_comm.h"

namespace tributary::nccl {

/// The calls of NCCL take the engine's lock themselves; the constructor runs inside the transport's poll().
class FrameReceiveComm final : public ReceiveComm, public transport::ChannelHandler {
 public:
  /// `listening_at`: the address in the handle. Greets the other end.
  FrameReceiveComm(std::shared_ptr<Engine> on, std::unique_ptr<transport::Channel> channel, const Secret& secret,
                   const std::string& listening_at);
  ~FrameReceiveComm() override;
  FrameReceiveComm(const FrameReceiveComm&) = delete;
  FrameReceiveComm& operator=(const FrameReceiveComm&) = delete;

  // ---- for the listener, with the lock
  [[nodiscard]] bool greeted() const noexcept { return greeting_.proved(); }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  /// Before the destructor runs with the lock held.
  void close_locked() { channel_.reset(); }

  abi::Result receive(void* data, std::size_t bytes, int tag, nccl::Request** request) override;

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  class Buffer final : public nccl::Request {
   public:
    abi::Result test(int* done, int* sizes) override;

    FrameReceiveComm* comm = nullptr;
    std::span<std::byte> room;
    std::size_t landed_bytes = 0;
    int tag = 0;
    bool done = false;
  };

  [[nodiscard]] transport::Placement place_first(const FrameHeader& header);
  [[nodiscard]] transport::Placement place_next(const FrameHeader& header);

  ListeningGreeting greeting_;
  std::array<Buffer, kNetRequestsMax> buffers_;
  std::vector<Buffer*> free_;
  std::deque<Buffer*> posted_;
  Buffer* filling_ = nullptr;  // the message that comes in
  bool failed_ = false;
  std::string failure_;
  std::unique_ptr<transport::Channel> channel_;  // last: its callbacks need the rest
};

}  // namespace tributary::nccl
