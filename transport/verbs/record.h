#pragma once
// One record of a message that has come: its bytes and its end.
#include <expected>
#include <span>
#include <string_view>

#include "transport/verbs/wire.h"

namespace tributary::transport::verbs {

struct Record {
  RecordHead head;
  std::span<const std::byte> body;  // bytes of the message: the payload, a RemotePayload, or nothing
  std::size_t end = 0;              // beginning of the next record, or the message's end
};

/// Reads the record at `at`, which is not behind the message's end. Returns the record, or a text that names the
/// mistake.
[[nodiscard]] std::expected<Record, std::string_view> read_record(std::span<const std::byte> message,
                                                                  std::size_t at) noexcept;

}  // namespace tributary::transport::verbs
