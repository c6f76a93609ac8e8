#pragma once
// One send or receive between two ranks, as its caller gave it.
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
  const std::byte* send = nullptr;  // used if `sends`, else `recv` is; may be null where count is 0
  std::byte* recv = nullptr;
  std::uint64_t count = 0;
  DType dtype = DType::uint8;
  std::uint32_t tag = 0;  // 0: in the order of each pair's calls
  std::function<void(const Status&)> on_done;
  std::function<void(std::uint32_t source)> on_source{};  // may be empty; tells the sender of a receive before on_done
  transport::TimePoint called_at{};
};

/// The facts that both sides of a message must agree on, in the headers of its frames.
[[nodiscard]] Signature signature_of(const Message& message);
/// "recv of 10 float32 with tag 7 from rank 3"; without a peer "from any rank".
[[nodiscard]] std::string describe(const Message& message, std::optional<std::uint32_t> peer);
/// "rank 1 sent 5 float32 with tag 7 to rank 0, which called recv for 10 float32"
[[nodiscard]] std::string disagreement(std::uint32_t from, const Signature& sent, std::uint32_t to,
                                       const Signature& expected, std::uint32_t tag);
/// Completes a message of a rank to itself: copies it, and tells both sides.
void finish_own(const Message& send, const Message& receive, std::uint32_t rank);

}  // namespace tributary::client
