#include "client/cli/perf/collective.h"

#include <array>

namespace tributary::cli {
namespace {

constexpr std::array<std::string_view, kPerfCollectiveCount> kNames{
    "all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather",
    "all_to_all", "gather", "scatter",   "sendrecv",       "barrier"};

/// Calls the library. Blocks if request == nullptr.
tributary_status call_library(const PerfCall& c, tributary_comm* comm, tributary_request** request) {
  switch (c.collective) {
    case PerfCollective::all_reduce:
      return tributary_all_reduce(c.send, c.recv, c.count, c.dtype, c.op, comm, request);
    case PerfCollective::reduce:
      return tributary_reduce(c.send, c.recv, c.count, c.dtype, c.op, c.root, comm, request);
    case PerfCollective::broadcast:
      return tributary_broadcast(c.send, c.recv, c.count, c.dtype, c.root, comm, request);
    case PerfCollective::reduce_scatter:
      return tributary_reduce_scatter(c.send, c.recv, c.count, c.dtype, c.op, comm, request);
    case PerfCollective::all_gather:
      return tributary_all_gather(c.send, c.recv, c.count, c.dtype, comm, request);
    case PerfCollective::all_to_all:
      return tributary_all_to_all(c.send, c.recv, c.count, c.dtype, comm, request);
    case PerfCollective::gather:
      return tributary_gather(c.send, c.recv, c.count, c.dtype, c.root, comm, request);
    case PerfCollective::scatter:
      return tributary_scatter(c.send, c.recv, c.count, c.dtype, c.root, comm, request);
    case PerfCollective::barrier:
      return tributary_barrier(comm, request);
    case PerfCollective::sendrecv:
      break;
  }
  return TRIBUTARY_ERROR_INTERNAL;
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

bool can_use_trees(PerfCollective collective) noexcept {
  return collective == PerfCollective::broadcast || collective == PerfCollective::all_gather ||
         collective == PerfCollective::barrier || reduces(collective);
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

tributary_status start(const PerfCall& call, tributary_comm* comm, std::vector<tributary_request*>& requests) {
  tributary_request* request = nullptr;
  if (call.collective == PerfCollective::sendrecv) {
    const int before = (call.rank + call.ranks - 1) % call.ranks;
    const auto received = tributary_recv(call.recv, call.count, call.dtype, before, comm, &request);
    if (received != TRIBUTARY_OK) return received;
    requests.push_back(request);
    const int next = (call.rank + 1) % call.ranks;
    const auto sent = tributary_send(call.send, call.count, call.dtype, next, comm, &request);
    if (sent != TRIBUTARY_OK) return sent;
  } else if (const auto status = call_library(call, comm, &request); status != TRIBUTARY_OK) {
    return status;
  }
  requests.push_back(request);
  return TRIBUTARY_OK;
}

tributary_status run(const PerfCall& call, tributary_comm* comm) {
  if (call.collective != PerfCollective::sendrecv) return call_library(call, comm, nullptr);
  std::vector<tributary_request*> requests;
  tributary_status status = start(call, comm, requests);
  for (tributary_request* request : requests) {
    const auto ended = tributary_wait(request, -1);
    if (status == TRIBUTARY_OK) status = ended;
  }
  return status;
}

}  // namespace tributary::cli
