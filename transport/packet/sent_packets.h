#pragma once
// The packets that are under way, by number, and a ring for them and for the ranges that must be sent again. A ring
// grows when it is full, and never shrinks.
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"

namespace tributary::transport::packet {

/// A first-in, first-out ring.
template <class T>
class Ring {
 public:
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
  [[nodiscard]] T& operator[](std::size_t index) noexcept {
    TRIBUTARY_ASSERT(index < size(), "item {} of {}", index, size());
    return items_[(begin_ + index) & (items_.size() - 1)];
  }
  [[nodiscard]] T& front() noexcept { return (*this)[0]; }
  void pop_front() noexcept {
    TRIBUTARY_ASSERT(!empty(), "the first is taken from an empty ring of {}", items_.size());
    ++begin_;
  }
  /// Adds an item, which the caller writes in its place. A copy of an item that was just written elsewhere would be
  /// slow: its large reads would wait for the small stores.
  [[nodiscard]] T& push_back() {
    if (size() == items_.size()) grow();
    return items_[end_++ & (items_.size() - 1)];
  }
  void push_back(const T& item) { push_back() = item; }
  void clear() noexcept { begin_ = end_ = 0; }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 16 : items_.size() * 2);
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) larger[i] = (*this)[i];
    items_ = std::move(larger);
    begin_ = 0;
    end_ = count;
  }
  std::vector<T> items_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

struct SentPacket {
  enum class State : std::uint8_t {
    gone,       // needs no acknowledgement, or has got one
    under_way,  // counts in bytes_under_way()
    given_up,   // counts as lost; its range is sent again or was sent again
  };
  std::uint64_t offset = 0;  // beginning of the range of the stream that the packet carried
  std::uint32_t bytes = 0;   // length of that range
  bool fin = false;          // the packet carried the end of the stream, too
  State state = State::gone;
  TimePoint at{};
  [[nodiscard]] std::uint64_t end() const noexcept { return offset + bytes + (fin ? 1 : 0); }
};

class SentPackets {
 public:
  /// The number of the next packet.
  [[nodiscard]] std::uint64_t next() const noexcept { return base_ + packets_.size(); }
  /// Adds the next packet. `asks`: the other side must acknowledge it.
  void add(std::uint64_t offset, std::uint32_t bytes, bool fin, bool asks, TimePoint at) {
    SentPacket& packet = packets_.push_back();
    packet.offset = offset;
    packet.bytes = bytes;
    packet.fin = fin;
    packet.state = asks ? SentPacket::State::under_way : SentPacket::State::gone;
    packet.at = at;
    if (asks) {
      ++under_way_;
      bytes_under_way_ += bytes;
      TRIBUTARY_ASSERT(under_way_ <= packets_.size(), "{} packets are under way, of {}", under_way_, packets_.size());
    } else {
      trim();
    }
  }
  /// The oldest number that this object remembers.
  [[nodiscard]] std::uint64_t base() const noexcept { return base_; }
  /// Finds a packet. Returns nullptr if it was forgotten, or never sent.
  [[nodiscard]] SentPacket* find(std::uint64_t number) noexcept {
    return number >= base_ && number < next() ? &packets_[static_cast<std::size_t>(number - base_)] : nullptr;
  }
  void set(SentPacket& packet, SentPacket::State state) noexcept {
    if (packet.state == SentPacket::State::under_way && state != SentPacket::State::under_way) {
      TRIBUTARY_ASSERT(under_way_ > 0 && bytes_under_way_ >= packet.bytes,
                       "a packet of {} bytes has arrived, and {} with {} bytes are under way", packet.bytes, under_way_,
                       bytes_under_way_);
      --under_way_;
      bytes_under_way_ -= packet.bytes;
      TRIBUTARY_ASSERT(under_way_ > 0 || bytes_under_way_ == 0, "{} bytes are under way in no packet",
                       bytes_under_way_);
    }
    packet.state = state;
  }
  /// Forgets the oldest packets, as far as they are gone or were given up long ago.
  void trim() noexcept {
    while (!packets_.empty()) {
      const auto state = packets_.front().state;
      if (state == SentPacket::State::under_way) return;
      if (state == SentPacket::State::given_up && packets_.size() <= kRemembered) return;
      packets_.pop_front();
      ++base_;
    }
  }
  /// Forgets the oldest packets, as far as they are gone.
  void trim_gone() noexcept {
    for (; !packets_.empty() && packets_.front().state == SentPacket::State::gone; ++base_) packets_.pop_front();
  }
  [[nodiscard]] std::size_t under_way() const noexcept { return under_way_; }
  [[nodiscard]] std::size_t bytes_under_way() const noexcept { return bytes_under_way_; }
  void clear() noexcept {
    base_ = next();
    packets_.clear();
    under_way_ = bytes_under_way_ = 0;
  }

 private:
  static constexpr std::size_t kRemembered = 128;  // packets given up, remembered in case they only come
                                                   // late
  Ring<SentPacket> packets_;
  std::uint64_t base_ = 0;
  std::size_t under_way_ = 0;
  std::size_t bytes_under_way_ = 0;
};

}  // namespace tributary::transport::packet
