#pragma once
// The receiving end of one connection, over sockets of its own: see message_stream.h for what is said on them.
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

/// One thread at a time, as NCCL does.
class SocketReceiveComm final : public ReceiveComm {
 public:
  /// `sockets`: the first one, and those of the pieces, as many as `counts` says.
  SocketReceiveComm(std::shared_ptr<Engine> on, std::vector<StreamSocket> sockets, const SocketCounts& counts);
  ~SocketReceiveComm() override = default;
  SocketReceiveComm(const SocketReceiveComm&) = delete;
  SocketReceiveComm& operator=(const SocketReceiveComm&) = delete;

  abi::Result receive(void* data, std::size_t bytes, int tag, nccl::Request** request) override;

 private:
  class Buffer final : public nccl::Request {
   public:
    abi::Result test(int* done, int* sizes) override;

    [[nodiscard]] bool done() const noexcept {
      return begun && landed == here && pieces_left.load(std::memory_order_acquire) == 0;
    }

    SocketReceiveComm* comm = nullptr;
    std::span<std::byte> room;  // from its message's head on, no longer than the message
    int tag = 0;
    bool begun = false;      // its message's head has come
    std::size_t here = 0;    // bytes that the first socket carries: all or none
    std::size_t landed = 0;  // of these
    std::atomic<std::uint32_t> pieces_left{0};
  };

  /// Reads the first socket until `wanted` has all that comes there, or nothing is there.
  void read_for(const Buffer& wanted);
  /// Does with the staged bytes what can be done. False: the next message has no buffer yet, or the stream is broken.
  bool take_staged();
  [[nodiscard]] bool begin_message();
  void deal(Buffer& buffer);
  /// One call to the system. False: there was no more than it brought.
  bool read_once();
  void land(std::size_t bytes);
  [[nodiscard]] std::size_t staged() const noexcept { return staged_end_ - staged_begin_; }
  /// Nothing more comes on the first socket, or nothing of it can be believed.
  void end(const std::string& why) {
    ended_ = why;
    first_.close();
  }
  /// False for a message that has begun on other sockets when the first one ends.
  [[nodiscard]] bool is_lost(const Buffer& buffer);

  static constexpr std::size_t kStagingBytes = 4096;  // many small messages in one call

  std::array<Buffer, kNetRequestsMax> buffers_;
  std::vector<Buffer*> free_;
  std::deque<Buffer*> posted_;
  Buffer* filling_ = nullptr;  // the message of which bytes come on the first socket
  std::uint32_t next_number_ = 0;
  std::string ended_;  // why; empty while the first socket goes on
  std::size_t staged_begin_ = 0, staged_end_ = 0;
  std::array<std::byte, kStagingBytes> staging_;
  Dealer dealer_;
  StreamSocket first_;
  std::optional<HelperThreads> helpers_;  // last: its threads use the buffers
};

}  // namespace tributary::nccl
