#pragma once
// Fetches one payload from the peer's memory by READs. Several READs may be under way at the same time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "transport/verbs/registrations.h"
#include "transport/verbs/wire.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

class Fetch {
 public:
  /// Sets the number of READs that may be under way at the same time.
  void set_reads_max(std::uint32_t reads) noexcept { reads_max_ = reads; }
  [[nodiscard]] std::uint32_t reads_max() const noexcept { return reads_max_; }

  /// `sink` keeps `place` registered until end().
  void begin(std::span<std::byte> place, RegistrationPtr sink, const RemotePayload& from) noexcept {
    TRIBUTARY_ASSERT(reading_ == 0, "a payload is fetched while {} reads of another are under way", reading_);
    place_ = place;
    sink_ = std::move(sink);
    from_ = from;
    asked_ = 0;
  }
  struct Read {
    std::span<std::byte> to;
    std::uint64_t from = 0;
    std::uint32_t key = 0;
  };
  /// Makes the next READ, of at most `bytes_max`, which then counts as under way. Returns none if READs for the whole
  /// payload were made, or enough READs are under way.
  [[nodiscard]] std::optional<Read> next(std::size_t bytes_max) noexcept {
    if (asked_ == place_.size() || reading_ >= reads_max_) return std::nullopt;
    const std::size_t bytes = std::min(bytes_max, place_.size() - asked_);
    const Read read{.to = place_.subspan(asked_, bytes), .from = from_.address + asked_, .key = from_.key};
    asked_ += bytes;
    ++reading_;
    return read;
  }
  /// Notes that one READ is done, or has failed.
  void read_over() noexcept {
    TRIBUTARY_ASSERT(reading_ > 0, "a read is over, and none of {} bytes was under way", place_.size());
    --reading_;
  }
  [[nodiscard]] bool all_asked() const noexcept { return asked_ == place_.size(); }
  /// True if all READs of the payload have ended; the payload is whole if none has failed.
  [[nodiscard]] bool all_read() const noexcept { return all_asked() && reading_ == 0; }
  [[nodiscard]] std::uint32_t local_key() const noexcept {
    TRIBUTARY_ASSERT(sink_ != nullptr, "{} bytes are read to memory that is not registered", place_.size());
    return sink_->local_key();
  }
  /// Ends the fetch, and gives up the place's registration.
  void end() noexcept { sink_.reset(); }

 private:
  std::span<std::byte> place_;
  RegistrationPtr sink_;
  RemotePayload from_;
  std::size_t asked_ = 0;      // bytes that READs have asked for so far
  std::uint32_t reading_ = 0;  // READs under way
  std::uint32_t reads_max_ = 1;
};

}  // namespace tributary::transport::verbs
