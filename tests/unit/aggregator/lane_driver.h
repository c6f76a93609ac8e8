#pragma once
// Drives one engine::Lane by hand, and keeps all its output.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aggregator/engine/lane.h"

namespace tributary::engine::test {

using Bytes = std::vector<std::byte>;

struct Sent {
  FrameHeader header;
  Bytes payload;
};
struct SentDown : Sent {
  std::uint32_t child = 0;
};
struct Fault {
  std::uint32_t child_a = 0, child_b = 0;
  MismatchReport report;
};

/// Copies every frame at the moment it is sent.
class Recorder final : public LaneOutput {
 public:
  bool to_parent(const FrameHeader& header, std::span<const std::byte> payload) override {
    up.push_back({header, {payload.begin(), payload.end()}});
    return false;
  }
  bool to_child(std::uint32_t child, const FrameHeader& header, std::span<const std::byte> payload) override {
    down.push_back({{header, {payload.begin(), payload.end()}}, child});
    return false;
  }
  void fault(std::uint32_t child_a, std::uint32_t child_b, MismatchReport report) override {
    faults.push_back({child_a, child_b, report});
  }
  void give_back(std::uint32_t child, std::span<const std::byte> payload) override {
    given_back.emplace_back(child, payload.data());
  }
  [[nodiscard]] const Sent* result_of(std::uint32_t child, std::uint64_t sequence) const {
    for (const SentDown& sent : down) {
      if (sent.child == child && sent.header.sequence == sequence) return &sent;
    }
    return nullptr;
  }

  std::vector<Sent> up;
  std::vector<SentDown> down;
  std::vector<Fault> faults;
  std::vector<std::pair<std::uint32_t, const std::byte*>> given_back;
};

using Outcome = std::expected<void, Refusal>;
inline constexpr std::uint32_t kEpoch = 3;

class LaneDriver {
 public:
  explicit LaneDriver(const LaneShape& shape) : lane(shape, kEpoch) {}

  Outcome contribute(std::uint32_t child, FrameHeader header, std::span<const std::byte> payload) {
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    const auto place = lane.contribution_begins(child, header);
    if (!place) return std::unexpected(place.error());
    EXPECT_EQ(place->size(), payload.size());
    if (!payload.empty()) std::memcpy(place->data(), payload.data(), payload.size());
    return lane.contribution_landed(child, header, out);
  }
  /// Contributes without a copy: `payload` must stay where it is until the lane gives it back.
  Outcome contribute_in_place(std::uint32_t child, FrameHeader header, std::span<const std::byte> payload) {
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    EXPECT_TRUE(lane.takes_in_place(child, header));
    return lane.contribution_landed(child, header, out, payload);
  }
  Outcome result(FrameHeader header, std::span<const std::byte> payload) {
    header.type = FrameType::result;
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    const auto place = lane.result_begins(header);
    if (!place) return std::unexpected(place.error());
    EXPECT_EQ(place->size(), payload.size());
    if (!payload.empty()) std::memcpy(place->data(), payload.data(), payload.size());
    return lane.result_landed(header, out);
  }

  Lane lane;
  Recorder out;
};

/// Returns the header of a contribution to segment `sequence`, of an operation of one segment.
inline FrameHeader contribution(std::uint64_t sequence, const Signature& signature,
                                std::uint16_t flags = frame_flags::kWantsResult) {
  FrameHeader header;
  header.type = FrameType::contribution;
  header.epoch = kEpoch;
  header.group = 9;
  header.sequence = sequence;
  header.operation = sequence;
  header.flags = flags;
  header.set_signature(signature);
  return header;
}

inline constexpr std::uint16_t kBareAndWants = frame_flags::kBare | frame_flags::kWantsResult;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Returns elements that differ from child to child, from place to place, and from sequence to sequence.
template <class T>
std::vector<T> values(std::uint32_t child, std::size_t count, std::uint64_t sequence = 0) {
  std::vector<T> list(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto mixed = (child * 7919U + i * 104729U + sequence * 15485863U) % 9973U;
    list[i] = static_cast<T>(static_cast<double>(mixed) * 0.37 + child);
  }
  return list;
}

}  // namespace tributary::engine::test
