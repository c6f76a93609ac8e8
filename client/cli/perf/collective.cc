#include "client/cli/perf/collective.h"

#include <array>

namespace tributary::cli {
namespace {

constexpr std::array<std::string_view, kPerfCollectiveCount> kNames{
    "all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather",
    "all_to_all", "gather", "scatter",   "sendrecv",       "barrier"};

tributary_status send_and_receive(const PerfCall& call, tributary_comm* comm) {
  tributary_request* receive = nullptr;
  tributary_request* send = nullptr;
  const int next = (call.rank + 1) % call.ranks;
  const int before = (call.rank + call.ranks - 1) % call.ranks;
  if (const auto s = tributary_recv(call.recv, call.count, call.dtype, before, comm, &receive); s != TRIBUTARY_OK)
    return s;
  if (const auto s = tributary_send(call.send, call.count, call.dtype, next, comm, &send); s != TRIBUTARY_OK) return s;
  const auto sent = tributary_wait(send, -1);
  const auto received = tributary_wait(receive, -1);
  return sent != TRIBUTARY_OK ? sent : received;
}

}  // namespace

std::string_view to_string(PerfCollective collective) noexcept {
  return kNames[static_cast<std::size_t>(collective)];
}

std::optional<PerfCollective> perf_collective_from_string(std::string_view name) noexcept {
  for (std::uint8_t i = 0; i < kPerfCollectiveCount; ++i) {
    if (kNames[i] == name) return static_cast<PerfCollective>(i);
  }
  return std::nullopt;
}

bool reduces(PerfCollective collective) noexcept {
  return collective == PerfCollective::all_reduce || collective == PerfCollective::reduce ||
         collective == PerfCollective::reduce_scatter;
}

bool has_root(PerfCollective collective) noexcept {
  return collective == PerfCollective::reduce || collective == PerfCollective::broadcast ||
         collective == PerfCollective::gather || collective == PerfCollective::scatter;
}

bool can_be_in_place(PerfCollective collective) noexcept {
  return collective != PerfCollective::all_to_all && collective != PerfCollective::sendrecv &&
         collective != PerfCollective::barrier;
}

PerfCounts counts_of(PerfCollective collective, std::size_t elements, std::uint32_t ranks) noexcept {
  const std::size_t part = elements / ranks;
  switch (collective) {
    case PerfCollective::reduce_scatter:
    case PerfCollective::scatter:
      return {part, part * ranks, part};
    case PerfCollective::all_gather:
    case PerfCollective::gather:
      return {part, part, part * ranks};
    case PerfCollective::all_to_all:
      return {part, part * ranks, part * ranks};
    case PerfCollective::barrier:
      return {};
    default:
      return {elements, elements, elements};
  }
}

double bus_factor(PerfCollective collective, std::uint32_t ranks) noexcept {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (collective) {
    case PerfCollective::all_reduce:
      return 2 * others;
    case PerfCollective::reduce:
    case PerfCollective::broadcast:
    case PerfCollective::sendrecv:
    case PerfCollective::barrier:
      return 1;
    default:
      return others;
  }
}

tributary_status run(const PerfCall& c, tributary_comm* comm) {
  switch (c.collective) {
    case PerfCollective::all_reduce:
      return tributary_all_reduce(c.send, c.recv, c.count, c.dtype, c.op, comm, nullptr);
    case PerfCollective::reduce:
      return tributary_reduce(c.send, c.recv, c.count, c.dtype, c.op, c.root, comm, nullptr);
    case PerfCollective::broadcast:
      return tributary_broadcast(c.send, c.recv, c.count, c.dtype, c.root, comm, nullptr);
    case PerfCollective::reduce_scatter:
      return tributary_reduce_scatter(c.send, c.recv, c.count, c.dtype, c.op, comm, nullptr);
    case PerfCollective::all_gather:
      return tributary_all_gather(c.send, c.recv, c.count, c.dtype, comm, nullptr);
    case PerfCollective::all_to_all:
      return tributary_all_to_all(c.send, c.recv, c.count, c.dtype, comm, nullptr);
    case PerfCollective::gather:
      return tributary_gather(c.send, c.recv, c.count, c.dtype, c.root, comm, nullptr);
    case PerfCollective::scatter:
      return tributary_scatter(c.send, c.recv, c.count, c.dtype, c.root, comm, nullptr);
    case PerfCollective::sendrecv:
      return send_and_receive(c, comm);
    case PerfCollective::barrier:
      return tributary_barrier(comm, nullptr);
  }
  return TRIBUTARY_ERROR_INTERNAL;
}

}  // namespace tributary::cli
