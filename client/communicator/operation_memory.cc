#include "client/communicator/operation_memory.h"
#include "tributary/protocol/collective.h"

namespace tributary::client {

/// Leaves out small buffers: they are a segment or two, which mostly travel in the send itself.
void OperationMemory::keep_registered(Operation& o) const {
  constexpr std::size_t kWorthIt = 64U << 10;
  if (o.memory_kept) return;
  const Signature& s = o.signature;
  const std::uint64_t bytes = s.count * o.element_bytes();
  const std::uint32_t nranks = shared_.settings.nranks;
  const bool is_root = s.root == shared_.rank();
  const auto keep = [&](const std::byte* at, std::size_t size) {
    return at != nullptr && size >= kWorthIt ? shared_.transport.keep_registered({at, size}) : nullptr;
  };
  o.kept_send = keep(o.send, amount_sent(s.collective, bytes, is_root, nranks));
  o.kept_recv = keep(o.recv, amount_received(s.collective, bytes, is_root, nranks));
}

Status OperationMemory::prepare(DirectMemory& memory) {
  if (!trees_.in_use()) return fail(Errc::unsupported, "in-network reduction is not in use");
  const auto ranges = memory.keep(shared_.transport);
  if (!ranges) return std::unexpected(ranges.error());
  return trees_.prepare(memory, *ranges);
}

void OperationMemory::settle(Operation& o, bool by_tree) {
  if (!o.direct) return;
  if (!by_tree) return leave_direct(o, {});
  const std::uint32_t generation = trees_.trees()->generation;
  if (o.direct_generation == generation) return;
  if (const Status ok = prepare(*o.direct); !ok) return leave_direct(o, ok);
  o.direct_generation = generation;
}

void OperationMemory::leave_direct(Operation& o, const Status& why) {
  const bool begun = o.state == Operation::State::in_network;
  auto host = o.direct->materialize(begun, why);
  if (!host) {
    const Error& error = host.error();
    shared_.whole.tell_rank_0(
        Shared::abort_message({error.code, "rank " + std::to_string(shared_.known_as()) + ": " + error.message}));
    return shared_.whole.begin_failing(error);
  }
  o.send = host->send;
  o.recv = host->recv;
  o.staged = std::move(host->staged);
  o.direct.reset();
}

}  // namespace tributary::client
