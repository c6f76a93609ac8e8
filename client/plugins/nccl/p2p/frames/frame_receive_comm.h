#pragma once
// The receiving end of one connection that uses channels of frames.
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/plugins/nccl/p2p/greeting.h"
#include "client/plugins/nccl/p2p/receive_comm.h"

namespace tributary::nccl {

/// NCCL's calls take the engine's lock themselves. The constructor runs inside the transport's poll(), which holds the
/// lock.
class FrameReceiveComm final : public ReceiveComm, public transport::ChannelHandler {
 public:
  /// Greets the other end. `listening_at` is the address in the handle.
  FrameReceiveComm(std::shared_ptr<Engine> on, std::unique_ptr<transport::Channel> channel, const Secret& secret,
                   const std::string& listening_at);
  ~FrameReceiveComm() override;
  FrameReceiveComm(const FrameReceiveComm&) = delete;
  FrameReceiveComm& operator=(const FrameReceiveComm&) = delete;

  // Functions that the listener calls with the lock held.
  [[nodiscard]] bool greeted() const noexcept { return greeting_.proved(); }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  /// Call it before the destructor if the caller holds the lock: the destructor then does not take the lock.
  void close_locked() { channel_.reset(); }

  abi::Result receive(void* data, std::size_t bytes, int tag, nccl::Request** request) override;

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  class Buffer final : public nccl::Request {
   public:
    abi::Result test(int* finished, int* sizes) override;

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
  Buffer* filling_ = nullptr;  // buffer of the message whose frames come now; nullptr: none
  bool failed_ = false;
  std::string failure_;
  std::unique_ptr<transport::Channel> channel_;  // last member: its callbacks use the other members
};

}  // namespace tributary::nccl
