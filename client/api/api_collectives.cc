// The functions of tributary.h for collectives, messages and their requests.
#include <algorithm>
#include <cstring>
#include <optional>

#include "client/api/arguments.h"
#include "client/api/guard.h"

using namespace tributary;          // NOLINT(google-build-using-namespace): this file defines C names for it
using namespace tributary::client;  // NOLINT(google-build-using-namespace)

namespace {

// The longest wait that can end. A longer wait counts as endless, because its sum with the present time would wrap.
constexpr std::int64_t kWaitMax = std::int64_t{1} << 61;

// The most bytes of an operation that the caller itself begins. The progress thread begins a larger operation while the
// caller goes on.
constexpr std::size_t kLargeBytes = 65536;

/// Queues the operation by `start`, then returns the request in `out`, or waits for it.
template <class Start>
tributary_status run(const std::shared_ptr<Comm>& comm, bool local, std::size_t bytes, tributary_request** out,
                     Start start) {
  const auto request = std::make_shared<Request>(comm->shared_errors(), comm, local);
  tributary_request* handle = requests().insert(request);
  if (handle == nullptr) {
    return report(Errc::exhausted,
                  "no more than " + std::to_string(RequestTable::kPlacesMax) +
                      " requests can be under way at once: wait for some of them",
                  &comm->errors());
  }
  const Comm::Next next =
      out == nullptr ? Comm::Next::wait : (bytes > kLargeBytes ? Comm::Next::large : Comm::Next::leave);
  if (const Status queued = start(request, next); !queued) {
    requests().remove(handle);
    return report(queued.error(), &comm->errors());
  }
  if (out != nullptr) {
    *out = handle;
    return TRIBUTARY_OK;
  }
  static_cast<void>(comm->wait(*request));
  requests().remove(handle);
  return request->report_outcome();
}

tributary_status run(const CollectiveCall& call, tributary_comm* handle, tributary_request** out) {
  return guarded(call.function, [&]() -> tributary_status {
    if (out != nullptr) *out = nullptr;
    const auto comm = comms().pin(handle);
    if (!usable(call.function, handle, comm)) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    const auto checked = check(call, comm->rank(), comm->size(), comm->ops().numerics, &comm->ops().factors);
    if (!checked) return report(checked.error(), &comm->errors());
    if (out == nullptr && comm->local() && !comm->has_other_work()) {  // the shortest way: without a request
      const Status status = comm->run(*checked);
      return status ? TRIBUTARY_OK : report(status.error(), &comm->errors());
    }
    return run(
        comm.share(), comm->local(), checked->bytes(), out,
        [&](const std::shared_ptr<Request>& request, Comm::Next next) { return comm->start(*checked, request, next); });
  });
}

tributary_status run(const MessageCall& call, tributary_comm* handle, tributary_request** out) {
  return guarded(call.function, [&]() -> tributary_status {
    if (out != nullptr) *out = nullptr;
    const auto comm = live(call.function, handle);
    if (!comm) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    auto message = check(call, comm->size());
    if (!message) return report(message.error(), &comm->errors());
    const std::size_t bytes = message->count * size_of(message->dtype);
    const auto peer = call.from_any() ? std::nullopt : std::optional(static_cast<std::uint32_t>(call.peer));
    return run(comm, false, bytes, out, [&](const std::shared_ptr<Request>& request, Comm::Next next) {
      request->want_source(call.source);
      return comm->start(peer, std::move(*message), request, next);
    });
  });
}

[[nodiscard]] std::shared_ptr<Request> live(const char* function, const tributary_request* handle) {
  auto request = requests().find(handle);
  if (!request) {
    report(Errc::bad_argument,
           std::string(function) + (handle == nullptr
                                        ? ": request is NULL"
                                        : ": request is not live: tributary_wait or tributary_test has freed it "
                                          "already, or its communicator was destroyed"));
    return nullptr;
  }
  if (!request->of_this_process()) {
    report(Errc::bad_argument,
           std::string(function) + ": request was made before a fork: only the process that made it can use it");
    return nullptr;
  }
  return request;
}

tributary_status refuse_timeout(const char* function, std::int64_t timeout_ns) {
  return report(Errc::bad_argument, std::string(function) + ": timeout_ns is " + std::to_string(timeout_ns) +
                                        "; allowed is -1 (for ever), or a number of nanoseconds from 0");
}

/// Waits until the operation has ended; returns false if the time-out passes first. -1: no time-out.
bool wait_for(Request& request, std::int64_t timeout_ns) {
  std::optional<Request::TimePoint> deadline;
  if (timeout_ns >= 0 && timeout_ns < kWaitMax)
    deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  const auto comm = request.driver();
  return comm ? comm->wait(request, deadline) : request.wait(deadline);
}

tributary_values to_c(const ValueNumbers::Buffer& buffer) noexcept {
  return {.elements = buffer.elements,
          .nans = buffer.found.nans,
          .infinities = buffer.found.infinities,
          .subnormals = buffer.found.subnormals};
}

/// Describes the request; what is known of the result counts only once it is done.
tributary_request_details details_of(const Request& request) noexcept {
  tributary_request_details details{};
  details.relative_error_bound = -1;
  details.done = request.done() ? 1 : 0;
  const CallValues* const values = request.values();
  if (values == nullptr) return details;
  details.counted = 1;
  details.input = to_c(values->numbers().input);
  if (details.done == 0) return details;
  details.result = to_c(values->numbers().result);
  details.relative_error_bound = values->error_bound().value_or(-1);
  return details;
}

}  // namespace

tributary_status tributary_op_create_premul_sum(tributary_comm* handle, const void* factor, tributary_dtype dtype,
                                                tributary_op* op) {
  constexpr const char* function = "tributary_op_create_premul_sum";
  return guarded(function, [&]() -> tributary_status {
    if (op == nullptr) return report(Errc::bad_argument, std::string(function) + ": op is NULL");
    const auto comm = live(function, handle);
    if (!comm) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    const auto checked = check_factor(function, factor, dtype);
    const auto made = checked ? comm->ops().factors.add(*checked) : std::unexpected(checked.error());
    if (!made) return report(made.error(), &comm->errors());
    *op = static_cast<tributary_op>(*made);
    return TRIBUTARY_OK;
  });
}

tributary_status tributary_op_destroy(tributary_comm* handle, tributary_op op) {
  constexpr const char* function = "tributary_op_destroy";
  return guarded(function, [&]() -> tributary_status {
    const auto comm = live(function, handle);
    if (!comm) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    if (comm->ops().factors.remove(op)) return TRIBUTARY_OK;
    return report(Errc::bad_argument,
                  std::string(function) + ": op is " + std::to_string(op) +
                      ", which is no live op of tributary_op_create_premul_sum for this communicator",
                  &comm->errors());
  });
}

tributary_status tributary_all_reduce(const void* send, void* recv, size_t count, tributary_dtype dtype,
                                      tributary_op op, tributary_comm* comm, tributary_request** request) {
  return run({.function = "tributary_all_reduce",
              .collective = Collective::all_reduce,
              .send = send,
              .recv = recv,
              .count = count,
              .dtype = dtype,
              .op = op},
             comm, request);
}

tributary_status tributary_reduce(const void* send, void* recv, size_t count, tributary_dtype dtype, tributary_op op,
                                  int root, tributary_comm* comm, tributary_request** request) {
  return run({.function = "tributary_reduce",
              .collective = Collective::reduce,
              .send = send,
              .recv = recv,
              .count = count,
              .dtype = dtype,
              .op = op,
              .root = root},
             comm, request);
}

tributary_status tributary_broadcast(const void* send, void* recv, size_t count, tributary_dtype dtype, int root,
                                     tributary_comm* comm, tributary_request** request) {
  return run({.function = "tributary_broadcast",
              .collective = Collective::broadcast,
              .send = send,
              .recv = recv,
              .count = count,
              .dtype = dtype,
              .root = root},
             comm, request);
}

tributary_status tributary_reduce_scatter(const void* send, void* recv, size_t recvcount, tributary_dtype dtype,
                                          tributary_op op, tributary_comm* comm, tributary_request** request) {
  return run({.function = "tributary_reduce_scatter",
              .collective = Collective::reduce_scatter,
              .send = send,
              .recv = recv,
              .count = recvcount,
              .dtype = dtype,
              .op = op},
             comm, request);
}

tributary_status tributary_all_gather(const void* send, void* recv, size_t sendcount, tributary_dtype dtype,
                                      tributary_comm* comm, tributary_request** request) {
  return run({.function = "tributary_all_gather",
              .collective = Collective::all_gather,
              .send = send,
              .recv = recv,
              .count = sendcount,
              .dtype = dtype},
             comm, request);
}

tributary_status tributary_all_to_all(const void* send, void* recv, size_t count, tributary_dtype dtype,
                                      tributary_comm* comm, tributary_request** request) {
  return run({.function = "tributary_all_to_all",
              .collective = Collective::all_to_all,
              .send = send,
              .recv = recv,
              .count = count,
              .dtype = dtype},
             comm, request);
}

tributary_status tributary_gather(const void* send, void* recv, size_t count, tributary_dtype dtype, int root,
                                  tributary_comm* comm, tributary_request** request) {
  return run({.function = "tributary_gather",
              .collective = Collective::gather,
              .send = send,
              .recv = recv,
              .count = count,
              .dtype = dtype,
              .root = root},
             comm, request);
}

tributary_status tributary_scatter(const void* send, void* recv, size_t count, tributary_dtype dtype, int root,
                                   tributary_comm* comm, tributary_request** request) {
  return run({.function = "tributary_scatter",
              .collective = Collective::scatter,
              .send = send,
              .recv = recv,
              .count = count,
              .dtype = dtype,
              .root = root},
             comm, request);
}

tributary_status tributary_send(const void* send, size_t count, tributary_dtype dtype, int peer, tributary_comm* comm,
                                tributary_request** request) {
  return run(
      MessageCall{
          .function = "tributary_send", .sends = true, .send = send, .count = count, .dtype = dtype, .peer = peer},
      comm, request);
}

tributary_status tributary_recv(void* recv, size_t count, tributary_dtype dtype, int peer, tributary_comm* comm,
                                tributary_request** request) {
  return run(MessageCall{.function = "tributary_recv", .recv = recv, .count = count, .dtype = dtype, .peer = peer},
             comm, request);
}

tributary_status tributary_send_tagged(const void* send, size_t count, tributary_dtype dtype, int peer, uint32_t tag,
                                       tributary_comm* comm, tributary_request** request) {
  return run(MessageCall{.function = "tributary_send_tagged",
                         .sends = true,
                         .send = send,
                         .count = count,
                         .dtype = dtype,
                         .peer = peer,
                         .tag = tag},
             comm, request);
}

tributary_status tributary_recv_tagged(void* recv, size_t count, tributary_dtype dtype, int peer, uint32_t tag,
                                       int* source, tributary_comm* comm, tributary_request** request) {
  return run(MessageCall{.function = "tributary_recv_tagged",
                         .recv = recv,
                         .count = count,
                         .dtype = dtype,
                         .peer = peer,
                         .tag = tag,
                         .source = source},
             comm, request);
}

tributary_status tributary_barrier(tributary_comm* comm, tributary_request** request) {
  return run(CollectiveCall{.function = "tributary_barrier", .collective = Collective::barrier}, comm, request);
}

tributary_status tributary_test(tributary_request* handle, int* done) {
  constexpr const char* function = "tributary_test";
  return guarded(function, [&]() -> tributary_status {
    if (done == nullptr) return report(Errc::bad_argument, std::string(function) + ": done is NULL");
    *done = 0;
    const auto request = live(function, handle);
    if (!request) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    if (!request->done()) {
      if (const auto comm = request->driver()) comm->help();
      if (!request->done()) return TRIBUTARY_OK;
    }
    *done = 1;
    requests().remove(handle);
    return request->report_outcome();
  });
}

tributary_status tributary_request_info(tributary_request* handle, int64_t timeout_ns,
                                        tributary_request_details* details) {
  constexpr const char* function = "tributary_request_info";
  return guarded(function, [&]() -> tributary_status {
    if (details == nullptr || details->struct_bytes < sizeof(std::size_t)) {
      return report(Errc::bad_argument,
                    std::string(function) + ": details->struct_bytes must be set to sizeof(tributary_request_details)");
    }
    if (timeout_ns < -1) return refuse_timeout(function, timeout_ns);
    const auto request = live(function, handle);
    if (!request) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    static_cast<void>(wait_for(*request, timeout_ns));
    tributary_request_details ours = details_of(*request);
    ours.struct_bytes = details->struct_bytes;  // do not change further members of a newer header
    std::memcpy(details, &ours, std::min(details->struct_bytes, sizeof ours));
    return TRIBUTARY_OK;
  });
}

tributary_status tributary_when_done(tributary_request* handle,
                                     void (*done)(void* context, const tributary_outcome* outcome), void* context) {
  constexpr const char* function = "tributary_when_done";
  return guarded(function, [&]() -> tributary_status {
    if (done == nullptr) return report(Errc::bad_argument, std::string(function) + ": done is NULL");
    const auto request = live(function, handle);
    if (!request) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    // Keep the handle in the table until the operation ends, so that the communicator's end finds the request.
    const bool first = request->when_done([ended = request.get(), handle, done, context] {
      requests().remove(handle);
      const Status& status = ended->outcome();
      const tributary_outcome outcome{.status = status ? TRIBUTARY_OK : to_status(status.error().code),
                                      .sentence = status ? "" : status.error().message.c_str(),
                                      .peer = ended->peer()};
      done(context, &outcome);
    });
    if (first) return TRIBUTARY_OK;
    return report(Errc::bad_argument, std::string(function) + ": it was called with this request already",
                  request->comm());
  });
}

tributary_status tributary_wait(tributary_request* handle, int64_t timeout_ns) {
  constexpr const char* function = "tributary_wait";
  return guarded(function, [&]() -> tributary_status {
    if (timeout_ns < -1) return refuse_timeout(function, timeout_ns);
    const auto request = live(function, handle);
    if (!request) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    if (!wait_for(*request, timeout_ns)) {
      return report(Errc::timed_out,
                    std::string(function) + ": the operation has not ended within " + std::to_string(timeout_ns) +
                        " ns and goes on; wait again",
                    request->comm());
    }
    requests().remove(handle);
    return request->report_outcome();
  });
}
