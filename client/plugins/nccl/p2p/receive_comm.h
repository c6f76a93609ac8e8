#pragma once
// The receiving end of one connection.
//
// One buffer a call (maxRecvs is 1): with grouped receives one sender of the group could run ahead on the stream and
// keep the bytes of another, for which the group waits, behind its own. A separate connection each has no such wait,
// and the system's buffers do what grouping is for.
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/plugins/nccl/p2p/greeting.h"
#include "client/plugins/nccl/p2p/net_comm.h"
#include "client/plugins/nccl/p2p/send_comm.h"
#include "client/plugins/nccl/request.h"

namespace tributary::nccl {

/// Messages are read straight into the posted buffers, the first posted with the message's tag; while there is none the
/// connection is not read, and the sender's socket fills up. All calls but the callbacks take the engine's lock
/// themselves; the constructor runs inside the transport's poll().
class ReceiveComm final : public NetComm {
 public:
  /// `listening_at`: the address in the handle. Greets the other end.
  ReceiveComm(std::shared_ptr<Engine> on, std::unique_ptr<transport::Channel> channel, const Secret& secret,
              const std::string& listening_at);
  ~ReceiveComm() override;
  ReceiveComm(const ReceiveComm&) = delete;
  ReceiveComm& operator=(const ReceiveComm&) = delete;

  // ---- for the listener, with the lock
  [[nodiscard]] bool greeted() const noexcept { return greeting_.proved(); }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  /// Before the destructor runs with the lock held.
  void close_locked() { channel_.reset(); }

  /// *request stays NULL when kNetRequestsMax are under way.
  abi::Result receive(void* data, std::size_t bytes, int tag, nccl::Request** request);

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  class Buffer final : public nccl::Request {
   public:
    abi::Result test(int* done, int* sizes) override;

    ReceiveComm* comm = nullptr;
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
