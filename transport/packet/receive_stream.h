#pragma once
// The other side's stream as it comes. Bytes in order go directly to the reader. Bytes that come early, or that the
// reader does not want yet, are kept in chunks of a pool that all connections share.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {

inline constexpr std::size_t kChunkBytes = 16384;
using Chunk = std::array<std::byte, kChunkBytes>;

/// A pool of chunks. It makes chunks when they are first needed, keeps them, and never makes more than its bound.
class ChunkPool {
 public:
  explicit ChunkPool(std::size_t bytes_max) : chunks_max_(bytes_max / kChunkBytes) {}
  /// Returns a chunk, or nullptr if none is left.
  [[nodiscard]] std::unique_ptr<Chunk> take();
  void give_back(std::unique_ptr<Chunk> chunk);
  [[nodiscard]] std::size_t in_use() const noexcept { return made_ - free_.size(); }
  [[nodiscard]] std::size_t chunks_max() const noexcept { return chunks_max_; }

 private:
  std::vector<std::unique_ptr<Chunk>> free_;
  std::size_t made_ = 0;
  std::size_t chunks_max_;
};

/// The reader of the stream.
class StreamReader {
 public:
  virtual ~StreamReader() = default;
  /// Takes the next bytes. Returns the number of bytes taken. A reader that takes fewer than all bytes wants no more
  /// bytes until read_on() is called.
  virtual std::size_t take(std::span<const std::byte> bytes) = 0;
};

class ReceiveStream {
 public:
  explicit ReceiveStream(ChunkPool& pool) : pool_(pool) {}
  ~ReceiveStream() { clear(); }
  ReceiveStream(const ReceiveStream&) = delete;
  ReceiveStream& operator=(const ReceiveStream&) = delete;

  /// The offset below which all bytes have come.
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
  /// The offset below which the reader took all bytes.
  [[nodiscard]] std::uint64_t consumed() const noexcept { return consumed_; }

  enum class Outcome : std::uint8_t {
    in_order,  // `received` moved, or all bytes were here already
    early,     // the bytes are kept, because earlier bytes are missing
    no_room,   // not all bytes were taken: the packet counts as lost
  };
  /// Takes bytes that lie below the credit that was given, at most `window` beyond consumed().
  Outcome receive(std::uint64_t offset, std::span<const std::byte> bytes, std::size_t window, StreamReader& reader);
  /// True if the next bytes would go directly to the reader, and no kept bytes would follow them.
  [[nodiscard]] bool straight() const noexcept { return consumed_ == received_ && ranges_.empty() && !reading_; }
  /// Notes that the reader took the next bytes while straight() was true.
  void pass(std::size_t bytes) noexcept {
    TRIBUTARY_ASSERT(straight(), "{} bytes pass by {} that are kept", bytes, received_ - consumed_);
    received_ += bytes;
    consumed_to(received_);
  }
  /// Gives kept bytes to the reader.
  void read_on(StreamReader& reader);
  /// True if all bytes from `begin` to `end` have come.
  [[nodiscard]] bool has(std::uint64_t begin, std::uint64_t end) const noexcept;
  /// Gives the chunks back. From here on the stream keeps no bytes, even if the reader calls this while it reads.
  void clear() noexcept;

 private:
  struct Range {
    std::uint64_t begin, end;
  };
  static constexpr std::size_t kRangesMax = 512;  // most ranges that came early, with gaps between them

  [[nodiscard]] bool store(std::uint64_t offset, std::span<const std::byte> bytes, std::size_t window);
  void make_room(std::size_t window);
  [[nodiscard]] bool add_range(std::uint64_t begin, std::uint64_t end);
  void join_ranges() noexcept;
  [[nodiscard]] std::unique_ptr<Chunk>& chunk_of(std::uint64_t offset) noexcept {
    return chunks_[offset / kChunkBytes % chunks_.size()];
  }
  void consumed_to(std::uint64_t offset) noexcept {
    TRIBUTARY_ASSERT(offset >= consumed_ && offset <= received_, "byte {} is consumed after {}, of {} received", offset,
                     consumed_, received_);
    const std::uint64_t before = std::exchange(consumed_, offset);
    if (!chunks_.empty()) give_back_chunks(before);
  }
  void give_back_chunks(std::uint64_t before) noexcept;

  ChunkPool& pool_;
  std::uint64_t received_ = 0;
  std::uint64_t consumed_ = 0;
  std::vector<Range> ranges_;                   // ranges beyond received_, in order, with gaps between them
  std::vector<std::unique_ptr<Chunk>> chunks_;  // a ring over the stream; empty until a chunk is needed
  bool reading_ = false;
  bool over_ = false;  // clear() was called
};

}  // namespace tributary::transport::packet
