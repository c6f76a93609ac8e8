// The header of every frame: a header that decodes must encode to the same bytes, and obey the bounds of its type.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include "tributary/protocol/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)tributary::decode_mismatch(bytes);
  for (std::size_t at = 0; at + tributary::kFrameHeaderBytes <= size; at += tributary::kFrameHeaderBytes) {
    const auto in = bytes.subspan(at).first<tributary::kFrameHeaderBytes>();
    const auto header = tributary::decode(in);
    if (!header) continue;
    if (header->payload_bytes > tributary::payload_bytes_max(header->type)) std::abort();
    std::array<std::byte, tributary::kFrameHeaderBytes> out{};
    tributary::encode(*header, out);
    if (!std::ranges::equal(in, out)) std::abort();
  }
  return 0;
}
