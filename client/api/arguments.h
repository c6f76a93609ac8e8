#pragma once
// What a call's arguments must be. Errors are Errc::bad_argument, and say which argument, its value and what is
// allowed.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/communicator/message.h"
#include "client/include/tributary/tributary.h"
#include "client/operation/operation.h"

namespace tributary::client {

/// A collective as the C API got it: nothing is checked yet. Members that a collective does not have keep their
/// defaults, which are right for it.
struct CollectiveCall {
  const char* function = "";  // for messages
  Collective collective = Collective::barrier;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  int dtype = static_cast<int>(DType::uint8);
  int op = static_cast<int>(ReduceOp::sum);
  int root = 0;
};

/// One that is right. Buffers that this rank does not use are null.
struct CheckedCall {
  Signature signature;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  bool plain_memory = true;  // host memory of the caller's own
  bool in_place = false;
  std::size_t send_bytes = 0, recv_bytes = 0;  // that this rank reads and writes

  [[nodiscard]] std::size_t bytes() const noexcept { return signature.count * size_of(signature.dtype); }
};
/// Allocates nothing unless something is wrong.
[[nodiscard]] Result<CheckedCall> check(const CollectiveCall& call, std::uint32_t rank, std::uint32_t nranks);
/// The operation, without its on_done.
[[nodiscard]] std::unique_ptr<Operation> make_operation(const CheckedCall& call);

struct MessageCall {
  const char* function = "";
  bool sends = false;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  int dtype = static_cast<int>(DType::uint8);
  int peer = 0;
  std::uint32_t tag = 0;
  int* source = nullptr;  // of a receive: where the caller wants the sender's rank; may be null

  [[nodiscard]] bool from_any() const noexcept { return !sends && peer == TRIBUTARY_ANY_SOURCE; }
};
/// The message, without its on_done; `call.peer` is valid then, unless it is from_any().
[[nodiscard]] Result<Message> check(const MessageCall& call, std::uint32_t nranks);

[[nodiscard]] Status check_group(const char* function, int nranks, int rank);

}  // namespace tributary::client
