#include "transport/verbs/record.h"

namespace tributary::transport::verbs {

std::expected<Record, std::string_view> read_record(std::span<const std::byte> message, std::size_t at) noexcept {
  const auto rest = message.subspan(at);
  Record record;
  if (rest.size() < sizeof record.head) return std::unexpected("a message that ends within a frame's header");
  std::memcpy(&record.head, rest.data(), sizeof record.head);
  if (record.head.kind < RecordKind::here || record.head.kind > RecordKind::part)
    return std::unexpected("a record of an unknown kind");
  std::size_t bytes = sizeof(RemotePayload);
  if (record.head.kind == RecordKind::here || is_in_parts(record.head.kind)) bytes = record.head.payload_bytes;
  if (record.head.kind == RecordKind::landed) bytes = 0;
  if (rest.size() - sizeof record.head < bytes) return std::unexpected("a message that ends within a frame");
  record.body = rest.subspan(sizeof record.head, bytes);
  record.end = std::min(message.size(), at + sizeof record.head + aligned(bytes));
  return record;
}

}  // namespace tributary::transport::verbs
