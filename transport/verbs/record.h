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
  std::size_t end = 0;              // where the next one begins, or the message ends
};

/// Reads the record that begins at `at`, which is not behind the message's end. Returns it, or a text that says what is
/// wrong.
[[nodiscard]] std::expected<Record, std::string_view> read_record(std::span<const std::byte> message,
                                                                  std::size_t at) noexcept;

}  // namespace tributary::transport::verbs
