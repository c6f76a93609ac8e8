#pragma once
// The sending end of one connection, over sockets of its own; message_stream.h has the format of their bytes.
//
// As in NCCL's own socket transport, NCCL's thread makes the system calls itself, without an epoll set or a lock. One
// system call writes all messages that wait, each with its head.
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

/// One thread at a time uses it, as NCCL does.
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

    /// The system has taken all of the message.
    [[nodiscard]] bool done() const noexcept {
      return written == head.size() + here.size() && pieces_left.load(std::memory_order_acquire) == 0;
    }

    SocketSendComm* comm = nullptr;
    HeadBytes head{};
    std::span<const std::byte> here;  // the bytes that the first socket carries: all of the message, or none
    std::size_t bytes = 0;
    std::size_t written = 0;  // how many bytes of head and here the system has taken
    std::atomic<std::uint32_t> pieces_left{0};
  };

  void open();
  void deal(Message& message, std::span<const std::byte> data);
  /// Writes as much as the first socket and its window take.
  void write_queued();
  /// Lists the bytes that wait, in order, up to `bytes_max` of them.
  [[nodiscard]] std::span<iovec> gather(std::span<iovec> into, std::size_t bytes_max) const;
  /// The number of bytes that the window lets through now.
  [[nodiscard]] std::size_t room();
  void look_for_end();
  void note_written(std::size_t bytes);
  [[nodiscard]] bool failed();
  void fail(const std::string& why);

  const SocketCounts counts_;
  std::array<Message, kNetRequestsMax> messages_;
  std::vector<Message*> free_;
  std::deque<Message*> to_write_;  // messages of which the first socket has not taken all
  std::uint32_t next_number_ = 0;
  Dealer dealer_;
  SendWindow window_;  // the first socket's window
  bool failed_ = false;
  std::string failure_;
  std::optional<Settling> settling_;  // empty once the connection is open
  std::optional<ConnectingSockets> connecting_;
  std::optional<StreamSocket> first_;
  std::optional<HelperThreads> helpers_;  // last: its threads use the messages
};

}  // namespace tributary::nccl
