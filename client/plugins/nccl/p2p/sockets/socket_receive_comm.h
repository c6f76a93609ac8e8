#pragma once
// The receiving end of one connection, over sockets of its own. message_stream.h describes the format of their bytes.
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/plugins/nccl/p2p/receive_comm.h"
#include "client/plugins/nccl/p2p/sockets/helper_threads.h"
#include "client/plugins/nccl/p2p/sockets/message_stream.h"
#include "client/plugins/nccl/socket_counts.h"

namespace tributary::nccl {

/// Only one thread at a time may use it. NCCL keeps this rule.
class SocketReceiveComm final : public ReceiveComm {
 public:
  /// `sockets` holds the first socket, then the data sockets. `counts` gives the number of data sockets.
  SocketReceiveComm(std::shared_ptr<Engine> on, std::vector<StreamSocket> sockets, const SocketCounts& counts);
  ~SocketReceiveComm() override = default;
  SocketReceiveComm(const SocketReceiveComm&) = delete;
  SocketReceiveComm& operator=(const SocketReceiveComm&) = delete;

  abi::Result receive(void* data, std::size_t bytes, int tag, nccl::Request** request) override;

 private:
  class Buffer final : public nccl::Request {
   public:
    abi::Result test(int* finished, int* sizes) override;

    [[nodiscard]] bool done() const noexcept {
      return begun && landed == here && pieces_left.load(std::memory_order_acquire) == 0;
    }

    SocketReceiveComm* comm = nullptr;
    std::span<std::byte> room;  // posted buffer; after the head has come, cut to the message's size
    int tag = 0;
    bool begun = false;      // true once the message's head has come
    std::size_t here = 0;    // number of bytes on the first socket: all bytes of the message, or 0
    std::size_t landed = 0;  // number of the bytes in `here` that have come
    std::atomic<std::uint32_t> pieces_left{0};
  };

  /// Reads the first socket until all of its bytes for `wanted` have come, or until the socket is empty.
  void read_for(const Buffer& wanted);
  /// Consumes as many staged bytes as possible. Returns false if the next message has no buffer yet, or if the stream
  /// is broken.
  bool take_staged();
  [[nodiscard]] bool begin_message();
  void deal(Buffer& buffer);
  /// Makes one system call. Returns false if the socket is empty afterwards.
  bool read_once();
  void land(std::size_t bytes);
  [[nodiscard]] std::size_t staged() const noexcept { return staged_end_ - staged_begin_; }
  /// Ends the stream: the first socket is closed, or its bytes make no sense.
  void end(const std::string& why) {
    ended_ = why;
    first_.close();
  }
  /// Returns true if the message can never be complete. A message on the data sockets can still be completed after the
  /// first socket has ended.
  [[nodiscard]] bool is_lost(const Buffer& buffer);

  static constexpr std::size_t kStagingBytes = 4096;  // room for many small messages in one call

  std::array<Buffer, kNetRequestsMax> buffers_;
  std::vector<Buffer*> free_;
  std::deque<Buffer*> posted_;
  Buffer* filling_ = nullptr;  // buffer of the message whose bytes come on the first socket now; nullptr: none
  std::uint32_t next_number_ = 0;
  std::string ended_;  // the reason why the first socket has ended; empty while it works
  std::size_t staged_begin_ = 0, staged_end_ = 0;
  std::array<std::byte, kStagingBytes> staging_;
  Dealer dealer_;
  StreamSocket first_;
  std::optional<HelperThreads> helpers_;  // last member: its threads use the buffers
};

}  // namespace tributary::nccl
