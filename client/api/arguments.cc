#include "client/api/arguments.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "tributary/protocol/collective.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {
namespace {

// The most bytes of a buffer, and of a sum of sizes: far below the end of the address space, so that no sum here wraps.
constexpr std::uint64_t kBufferBytesMax = std::uint64_t{1} << 56;

std::string hex(const void* address) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%p", address);
  return text.data();
}

std::unexpected<Error> bad(const char* function, const std::string& rest) {
  return fail(Errc::bad_argument, std::string(function) + ": " + rest);
}

/// The numbers of elements that one rank reads and writes in a collective.
struct Part {
  std::uint64_t send = 0;  // elements read; 0: the rank does not use send
  std::uint64_t recv = 0;  // elements written; 0: the rank does not use recv
  // The form of a call in place: one buffer begins `offset` elements inside the other.
  InPlace in_place = InPlace::never;
  std::uint64_t offset = 0;
};

Part part_of(Collective collective, std::uint64_t count, bool is_root, std::uint32_t rank, std::uint32_t nranks) {
  const CollectiveRow& row = row_of(collective);
  return {.send = amount_sent(collective, count, is_root, nranks),
          .recv = amount_received(collective, count, is_root, nranks),
          .in_place = row.in_place,
          .offset = row.send == row.recv ? 0 : count * rank};
}

Result<DType> check_dtype(const char* function, int dtype) {
  if (dtype < 0 || dtype >= kDTypeCount) {
    return bad(function, "dtype is " + std::to_string(dtype) + ", which is no tributary_dtype; allowed is 0 to " +
                             std::to_string(kDTypeCount - 1));
  }
  return static_cast<DType>(dtype);
}

Status check_count(const char* function, std::size_t count, DType dtype, std::uint32_t times) {
  std::uint64_t bytes = 0;  // of all ranks together; a product, because a division takes longer than the other checks
  if (!__builtin_mul_overflow(count, size_of(dtype) * times, &bytes) && bytes <= kBufferBytesMax) return {};
  return bad(function, "count is " + std::to_string(count) + " of " + std::string(to_string(dtype)) +
                           (times == 1 ? "" : " for each of " + std::to_string(times) + " ranks") +
                           ", which is more than any memory holds");
}

Status check_not_null(const char* function, const char* name, const void* buffer, std::uint64_t elements, DType dtype) {
  if (elements == 0 || buffer != nullptr) return {};
  return bad(function, std::string(name) + " is NULL, but on this rank it must hold " + std::to_string(elements) + " " +
                           std::string(to_string(dtype)));
}

std::string in_place_rule(InPlace kind, std::uint64_t offset) {
  switch (kind) {
    case InPlace::never:
      return "they must be disjoint: this collective has no in-place form";
    case InPlace::send_in_recv:
      return offset == 0 ? "they must be equal (in place) or disjoint"
                         : "they must be disjoint, or send == recv + rank * count elements (in place)";
    case InPlace::recv_in_send:
      return "they must be disjoint, or recv == send + rank * count elements (in place)";
  }
  return {};
}

/// Returns true for buffers in place, false for disjoint buffers; an error for any other overlap.
Result<bool> check_overlap(const CollectiveCall& call, const Part& part, std::size_t element) {
  if (part.send == 0 || part.recv == 0) return false;
  const auto send = reinterpret_cast<std::uintptr_t>(call.send), recv = reinterpret_cast<std::uintptr_t>(call.recv);
  const std::uint64_t send_bytes = part.send * element, recv_bytes = part.recv * element;
  const std::uint64_t offset = part.offset * element;
  if (part.in_place == InPlace::send_in_recv && send == recv + offset) return true;
  if (part.in_place == InPlace::recv_in_send && recv == send + offset) return true;
  if (send + send_bytes <= recv || recv + recv_bytes <= send) return false;
  return bad(call.function, "send (" + std::to_string(send_bytes) + " bytes at " + hex(call.send) + ") and recv (" +
                                std::to_string(recv_bytes) + " bytes at " + hex(call.recv) + ") overlap; " +
                                in_place_rule(part.in_place, part.offset));
}

Status check_operator(const char* function, ReduceOp op, DType dtype) {
  if (is_defined(op, dtype)) return {};
  return bad(function, "op is " + std::string(to_string(op)) + ", which only integers have, but dtype is " +
                           std::string(to_string(dtype)));
}

std::unexpected<Error> no_op(const CollectiveCall& call) {
  return bad(call.function, "op is " + std::to_string(call.op) + ", which is no tributary_op; allowed is 0 to " +
                                std::to_string(kReduceOpCount - 1) +
                                ", and what tributary_op_create_premul_sum has made for this communicator until "
                                "tributary_op_destroy, with TRIBUTARY_OP_FAST or TRIBUTARY_OP_EXACT added or without");
}

/// Returns the factor of a call whose op is that of a factor.
Result<Factor> factor_of(const CollectiveCall& call, DType dtype, const Factors* factors) {
  const auto found = factors != nullptr ? factors->find(call.op) : std::nullopt;
  if (!found) return no_op(call);
  if (found->dtype == dtype) return *found;
  return bad(call.function, "op has a factor of type " + std::string(to_string(found->dtype)) + ", but dtype is " +
                                std::string(to_string(dtype)));
}

Status check_rank_argument(const char* function, const char* name, int value, std::uint32_t nranks) {
  if (value >= 0 && static_cast<std::uint32_t>(value) < nranks) return {};
  return bad(function, std::string(name) + " is " + std::to_string(value) + ", but the communicator has ranks 0 to " +
                           std::to_string(nranks - 1));
}

}  // namespace

std::optional<CallOp> call_op(int op, Numerics otherwise) noexcept {
  constexpr int kOwnNumerics = TRIBUTARY_OP_FAST | TRIBUTARY_OP_EXACT;
  const int own = op & kOwnNumerics;
  const int number = op & ~kOwnNumerics;
  if (own == kOwnNumerics || number < 0 || number >= kReduceOpCount) return std::nullopt;
  return CallOp{.op = static_cast<ReduceOp>(number),
                .numerics = own == TRIBUTARY_OP_EXACT  ? Numerics::exact
                            : own == TRIBUTARY_OP_FAST ? Numerics::fast
                                                       : otherwise};
}

Result<CheckedCall> check(const CollectiveCall& call, std::uint32_t rank, std::uint32_t nranks, Numerics numerics,
                          const Factors* factors) {
  const auto dtype = check_dtype(call.function, call.dtype);
  if (!dtype) return std::unexpected(dtype.error());
  std::optional<Factor> factor;
  if (Factors::names(call.op)) {
    const auto found = factor_of(call, *dtype, factors);
    if (!found) return std::unexpected(found.error());
    factor = *found;
  }
  const auto op = call_op(factor ? call.op % Factors::kUnit : call.op, numerics);
  if (!op || (factor && op->op != ReduceOp::sum)) return no_op(call);
  if (auto ok = check_operator(call.function, op->op, *dtype); !ok) return std::unexpected(ok.error());
  if (has_root(call.collective)) {
    if (auto ok = check_rank_argument(call.function, "root", call.root, nranks); !ok)
      return std::unexpected(ok.error());
  }
  if (auto ok = check_count(call.function, call.count, *dtype, nranks); !ok) return std::unexpected(ok.error());
  const bool is_root = static_cast<std::uint32_t>(call.root) == rank;
  const Part part = part_of(call.collective, call.count, is_root, rank, nranks);
  if (auto ok = check_not_null(call.function, "send", call.send, part.send, *dtype); !ok)
    return std::unexpected(ok.error());
  if (auto ok = check_not_null(call.function, "recv", call.recv, part.recv, *dtype); !ok)
    return std::unexpected(ok.error());
  const auto in_place = check_overlap(call, part, size_of(*dtype));
  if (!in_place) return std::unexpected(in_place.error());

  return CheckedCall{
      .signature = {.collective = call.collective,
                    .dtype = *dtype,
                    .op = row_of(call.collective).reduces ? with_numerics(op->op, *dtype, op->numerics) : op->op,
                    .root = static_cast<std::uint32_t>(call.root),
                    .count = call.count},
      .send = part.send > 0 ? static_cast<const std::byte*>(call.send) : nullptr,
      .recv = part.recv > 0 ? static_cast<std::byte*>(call.recv) : nullptr,
      .in_place = *in_place,
      .factor = factor,
      .send_bytes = part.send * size_of(*dtype),
      .recv_bytes = part.recv * size_of(*dtype)};
}

Result<Factor> check_factor(const char* function, const void* value, int dtype) {
  const auto known = check_dtype(function, dtype);
  if (!known) return std::unexpected(known.error());
  if (value == nullptr) return bad(function, "factor is NULL; it must hold one " + std::string(to_string(*known)));
  Factor factor{.dtype = *known};
  std::memcpy(factor.value.data(), value, size_of(*known));
  return factor;
}

std::unique_ptr<Operation> make_operation(const CheckedCall& call) {
  auto operation = std::make_unique<Operation>();
  operation->signature = call.signature;
  operation->send = call.send;
  operation->recv = call.recv;
  operation->in_place = call.in_place;
  return operation;
}

Result<Message> check(const MessageCall& call, std::uint32_t nranks) {
  const auto dtype = check_dtype(call.function, call.dtype);
  if (!dtype) return std::unexpected(dtype.error());
  if (!call.from_any()) {
    if (auto ok = check_rank_argument(call.function, "peer", call.peer, nranks); !ok)
      return std::unexpected(ok.error());
  }
  if (auto ok = check_count(call.function, call.count, *dtype, 1); !ok) return std::unexpected(ok.error());
  const void* buffer = call.sends ? call.send : call.recv;
  if (auto ok = check_not_null(call.function, call.sends ? "send" : "recv", buffer, call.count, *dtype); !ok) {
    return std::unexpected(ok.error());
  }
  Message message;
  message.sends = call.sends;
  message.send = static_cast<const std::byte*>(call.send);
  message.recv = static_cast<std::byte*>(call.recv);
  message.count = call.count;
  message.dtype = *dtype;
  message.tag = call.tag;
  return message;
}

Status check_group(const char* function, int nranks, int rank) {
  if (nranks < 1 || static_cast<std::uint32_t>(nranks) > kRanksMax) {
    return bad(function, "nranks is " + std::to_string(nranks) + "; allowed is 1 to " + std::to_string(kRanksMax));
  }
  return check_rank_argument(function, "rank", rank, static_cast<std::uint32_t>(nranks));
}

}  // namespace tributary::client
