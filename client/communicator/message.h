#pragma once
// One call of send or recv between two ranks, with its arguments.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tributary/protocol/frame.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

struct Message {
  bool sends = false;
  const std::byte* send = nullptr;  // the data of a send; a receive uses `recv`; may be nullptr if count is 0
  std::byte* recv = nullptr;
  std::uint64_t count = 0;
  DType dtype = DType::uint8;
  std::uint32_t tag = 0;  // 0: no tag; messages match in the order of each pair's calls
  std::function<void(const Status&)> on_done;
  std::function<void(std::uint32_t source)> on_source{};  // may be empty; gets a receive's sender, before on_done
  transport::TimePoint called_at{};
};

/// Returns the facts on which both sides of a message must agree; the headers of its frames carry them.
[[nodiscard]] Signature signature_of(const Message& message);
/// Returns a text such as "recv of 10 float32 with tag 7 from rank 3", or "from any rank" without a peer.
[[nodiscard]] std::string describe(const Message& message, std::optional<std::uint32_t> peer);
/// Returns a text such as "rank 1 sent 5 float32 with tag 7 to rank 0, which called recv for 10 float32".
[[nodiscard]] std::string disagreement(std::uint32_t from, const Signature& sent, std::uint32_t to,
                                       const Signature& expected, std::uint32_t tag);
/// Completes a message from a rank to itself: copies the data, and ends both calls.
void finish_own(const Message& send, const Message& receive, std::uint32_t rank);

}  // namespace tributary::client
