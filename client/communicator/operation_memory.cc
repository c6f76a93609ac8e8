#include "client/communicator/operation_memory.h"

namespace tributary::client {

namespace {

struct BufferBytes {
  std::size_t send = 0;
  std::size_t recv = 0;
};

/// What this rank's part reads and writes; nothing of a buffer that it does not use.
BufferBytes buffer_bytes(const Operation& o, std::uint32_t nranks, std::uint32_t rank) {
  const std::size_t one = o.signature.count * o.element_bytes();
  const std::size_t all = one * nranks;
  const bool root = o.signature.root == rank;
  switch (o.signature.collective) {
    case Collective::all_reduce:
      return {one, one};
    case Collective::reduce:
      return {one, root ? one : 0};
    case Collective::broadcast:
      return {root ? one : 0, one};
    case Collective::reduce_scatter:
      return {all, one};
    case Collective::all_gather:
      return {one, all};
    case Collective::all_to_all:
      return {all, all};
    case Collective::gather:
      return {one, root ? all : 0};
    case Collective::scatter:
      return {root ? all : 0, one};
    case Collective::barrier:
      return {};
  }
  return {};
}

}  // namespace

/// Of small buffers a segment or two is all there is, and most of those travel in the send itself.
void OperationMemory::keep_registered(Operation& o) const {
  constexpr std::size_t kWorthIt = 64U << 10;
  if (o.memory_kept) return;
  const BufferBytes bytes = buffer_bytes(o, shared_.settings.nranks, shared_.rank());
  const auto keep = [&](const std::byte* at, std::size_t size) {
    return at != nullptr && size >= kWorthIt ? shared_.transport.keep_registered({at, size}) : nullptr;
  };
  o.kept_send = keep(o.send, bytes.send);
  o.kept_recv = keep(o.recv, bytes.recv);
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
