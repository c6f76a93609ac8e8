#pragma once
// Checks the arguments of calls. Errors are Errc::bad_argument, and name the wrong argument, its value and the allowed
// values.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "client/api/factors.h"
#include "client/communicator/message.h"
#include "client/operation/operation.h"
#include "tributary/protocol/numerics.h"
#include "tributary/tributary.h"

namespace tributary::client {

/// The arguments of a collective from the C API, without checks. Members that a collective does not use keep their
/// defaults, which pass the checks.
struct CollectiveCall {
  const char* function = "";  // name of the function, for messages
  Collective collective = Collective::barrier;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  int dtype = static_cast<int>(DType::uint8);
  int op = static_cast<int>(ReduceOp::sum);
  int root = 0;
};

/// A call that has passed the checks. Buffers that this rank does not use are nullptr.
struct CheckedCall {
  Signature signature;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  bool plain_memory = true;  // the buffers are ordinary host memory of the caller
  bool in_place = false;
  bool multiplied = false;                      // the input is the products with `factor`
  std::optional<Factor> factor = std::nullopt;  // of a pre-multiplied sum
  std::size_t send_bytes = 0, recv_bytes = 0;   // bytes that this rank reads and writes

  [[nodiscard]] std::size_t bytes() const noexcept { return signature.count * size_of(signature.dtype); }
};
/// The parts of a tributary_op, which may have numerics of its own.
struct CallOp {
  ReduceOp op = ReduceOp::sum;
  Numerics numerics = Numerics::fast;
};
/// Returns the parts of an op; nullopt if it is no tributary_op. `otherwise`: the numerics of an op without its own.
[[nodiscard]] std::optional<CallOp> call_op(int op, Numerics otherwise) noexcept;

/// Checks a call. Allocates memory only for an error. `numerics`, `factors`: those of the communicator; nullptr: it has
/// no factors.
[[nodiscard]] Result<CheckedCall> check(const CollectiveCall& call, std::uint32_t rank, std::uint32_t nranks,
                                        Numerics numerics = Numerics::fast, const Factors* factors = nullptr);
/// Makes the factor of an op from the value of the C API.
[[nodiscard]] Result<Factor> check_factor(const char* function, const void* value, int dtype);
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
  int* source = nullptr;  // where a receive writes the sender's rank; may be nullptr

  [[nodiscard]] bool from_any() const noexcept { return !sends && peer == TRIBUTARY_ANY_SOURCE; }
};
/// Makes the message, without its on_done, and checks `call.peer`, unless from_any() returns true.
[[nodiscard]] Result<Message> check(const MessageCall& call, std::uint32_t nranks);

[[nodiscard]] Status check_group(const char* function, int nranks, int rank);

}  // namespace tributary::client
