#pragma once
// Checks the arguments of calls. Errors are Errc::bad_argument, and say which argument is wrong, its value and the
// allowed values.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/communicator/message.h"
#include "client/operation/operation.h"
#include "tributary/tributary.h"

namespace tributary::client {

/// A collective as the C API received it, unchecked. Members that a collective does not have keep their defaults, which
/// pass the checks.
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

/// A call that has passed the checks. Buffers that this rank does not use are null.
struct CheckedCall {
  Signature signature;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  bool plain_memory = true;  // the caller's ordinary host memory
  bool in_place = false;
  std::size_t send_bytes = 0, recv_bytes = 0;  // bytes that this rank reads and writes

  [[nodiscard]] std::size_t bytes() const noexcept { return signature.count * size_of(signature.dtype); }
};
/// Allocates nothing unless there is an error.
[[nodiscard]] Result<CheckedCall> check(const CollectiveCall& call, std::uint32_t rank, std::uint32_t nranks);
/// Makes the operation, without its on_done.
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
  int* source = nullptr;  // where a receive's caller wants the sender's rank; may be null

  [[nodiscard]] bool from_any() const noexcept { return !sends && peer == TRIBUTARY_ANY_SOURCE; }
};
/// Makes the message, without its on_done, and checks `call.peer`, unless it is from_any().
[[nodiscard]] Result<Message> check(const MessageCall& call, std::uint32_t nranks);

[[nodiscard]] Status check_group(const char* function, int nranks, int rank);

}  // namespace tributary::client
