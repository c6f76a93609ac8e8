#pragma once
// The sending end of one connection, over sockets of its own. message_stream.h describes the format of their bytes.
//
// As in NCCL's own socket transport, NCCL's thread makes the system calls itself, without an epoll set or a lock. One
// system call writes all waiting messages, each with its head.
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/plugins/nccl/p2p/send_comm.h"
#include "client/plugins/nccl/p2p/sockets/connecting_sockets.h"
#include "client/plugins/nccl/p2p/sockets/helper_threads.h"
#include "client/plugins/nccl/p2p/sockets/message_stream.h"
#include "client/plugins/nccl/p2p/sockets/send_window.h"

namespace tributary::nccl {

/// Only one thread at a time may use it. NCCL keeps this rule.
class SocketSendComm final : public SendComm {
 public:
  SocketSendComm(std::shared_ptr<Engine> on, const NetHandle& to);
  ~SocketSendComm() override;
  SocketSendComm(const SocketSendComm&) = delete;
  SocketSendComm& operator=(const SocketSendComm&) = delete;

  [[nodiscard]] Opening opening() override;
  abi::Result send(const void* data, std::size_t bytes, int tag, nccl::Request** request) override;

 private:
  class Message final : public nccl::Request {
   public:
    abi::Result test(int* finished, int* sizes) override;

    /// Returns true once the system has taken the whole message.
    [[nodiscard]] bool done() const noexcept {
      return written == head.size() + here.size() && pieces_left.load(std::memory_order_acquire) == 0;
    }

    SocketSendComm* comm = nullptr;
    HeadBytes head{};
    std::span<const std::byte> here;  // bytes that the first socket carries: the whole message, or none
    std::size_t bytes = 0;
    std::size_t written = 0;  // number of bytes of `head` and `here` that the system has taken
    std::atomic<std::uint32_t> pieces_left{0};
  };

  void open();
  void deal(Message& message, std::span<const std::byte> data);
  /// Writes as many bytes as the first socket and its window take.
  void write_queued();
  /// Lists the waiting bytes in order, at most `bytes_max` of them.
  [[nodiscard]] std::span<iovec> gather(std::span<iovec> into, std::size_t bytes_max) const;
  /// Returns the number of bytes that the window allows now.
  [[nodiscard]] std::size_t room();
  void look_for_end();
  void note_written(std::size_t bytes);
  [[nodiscard]] bool failed();
  void fail(const std::string& why);

  const SocketCounts counts_;
  std::array<Message, kNetRequestsMax> messages_;
  std::vector<Message*> free_;
  std::deque<Message*> to_write_;  // messages that the first socket has not taken completely
  std::uint32_t next_number_ = 0;
  Dealer dealer_;
  SendWindow window_;  // window of the first socket
  bool failed_ = false;
  std::string failure_;
  std::optional<Settling> settling_;  // empty once the connection is open
  std::optional<ConnectingSockets> connecting_;
  std::optional<StreamSocket> first_;
  std::optional<HelperThreads> helpers_;  // last member: its threads use the messages
};

}  // namespace tributary::nccl
