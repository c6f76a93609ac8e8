#pragma once
// A sealed connection whose socket has left its transport, as a stream of bytes. Over the network the bytes travel in
// the payload records of a sealed stream. The owner calls it at any time; no call blocks.
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace tributary::transport {

class SealedStream;

class SealedSocket {
 public:
  /// `stream`: both sides have agreed on keys, and all frames are read.
  explicit SealedSocket(std::unique_ptr<SealedStream> stream);
  ~SealedSocket();
  SealedSocket(const SealedSocket&) = delete;
  SealedSocket& operator=(const SealedSocket&) = delete;

  /// Writes as sendmsg(2) does. A byte counts as written when the system has taken the whole record with it. The caller
  /// offers all other bytes again, unchanged and in the same order.
  [[nodiscard]] ssize_t write(int socket, std::span<const iovec> parts);
  /// Reads as recvmsg(2) does. EBADMSG: a record is not authentic; the connection must end.
  [[nodiscard]] ssize_t read(int socket, std::span<const iovec> parts);

 private:
  class Cursor;
  [[nodiscard]] bool flush(int socket);
  [[nodiscard]] std::size_t seal(Cursor& from, std::span<std::byte> room, std::size_t& content);
  [[nodiscard]] bool open(Cursor& to);
  void take_opened(Cursor& to);

  std::unique_ptr<SealedStream> stream_;
  std::size_t pending_ = 0;        // bytes whose records the system has not wholly taken
  std::size_t unreported_ = 0;     // bytes whose records it has taken, which no write() has counted yet
  std::vector<std::byte> opened_;  // the rest of a record that was longer than the caller's room
  std::size_t opened_begin_ = 0;
};

/// A socket that has left its transport, and the seal of its connection; nullptr: the bytes travel in clear.
struct ReleasedSocket {
  int socket = -1;
  std::unique_ptr<SealedSocket> seal{};
};

}  // namespace tributary::transport
