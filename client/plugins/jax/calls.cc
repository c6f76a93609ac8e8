// The calls of MPI that XLA's collectives on CPUs make (jaxlib 0.4.30 to 0.10).
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "client/plugins/jax/abi.h"
#include "client/plugins/jax/errors.h"
#include "client/plugins/jax/job.h"
#include "client/plugins/jax/reduction.h"
#include "client/plugins/jax/types.h"

namespace tributary::jax {
namespace {

constexpr const char* kLibraryVersion = "Tributary: the calls of MPI that JAX makes";

void copy_text(const std::string& text, char* to, std::size_t bytes, int* length) {
  const std::size_t count = std::min(text.size(), bytes - 1);
  std::memcpy(to, text.data(), count);
  to[count] = '\0';
  *length = static_cast<int>(count);
}

/// The communicator of a call; `code` is the call's error if it has none.
struct Place {
  std::shared_ptr<Communicator> held;
  tributary_comm* comm = nullptr;
  int code = kSuccess;
};

Place place_of(const char* call, Comm handle) {
  Place place{.held = job().find(handle)};
  place.comm = place.held->comm();
  if (place.comm == nullptr) place.code = fail(kErrorComm, call, place.held->failure());
  return place;
}

/// Returns the bytes of a message or a part, or nothing after fail().
std::optional<std::size_t> bytes_of(const char* call, int count, Datatype type, int& code) {
  const std::optional<Element> element = element_of(type);
  if (!element) {
    code = fail(kErrorType, call, "the library does not know this type: it has only the types that JAX uses");
  } else if (count < 0) {
    code = fail(kErrorCount, call,
                "the count " + std::to_string(count) + " is negative, or was too large for MPI's 31 bits");
  } else {
    return static_cast<std::size_t>(count) * element->bytes;
  }
  return std::nullopt;
}

void set_status(MessageStatus* status, int source, int tag) {
  if (status == nullptr) return;
  status->source = source;
  status->tag = tag;
  status->error = kSuccess;
}

/// A message between two ranks. XLA's messages all have the tag 0, and their order pairs them.
int start_message(const char* call, const void* send, void* receive, int count, Datatype type, int peer, int tag,
                  Comm handle, tributary_request** request) {
  const Place place = place_of(call, handle);
  if (place.code != kSuccess) return place.code;
  int code = kSuccess;
  const std::optional<std::size_t> bytes = bytes_of(call, count, type, code);
  if (!bytes) return code;
  if (tag != 0) return fail(kErrorUnsupported, call, "the library has only messages with tag 0");
  const tributary_status status = receive == nullptr
                                      ? tributary_send(send, *bytes, TRIBUTARY_UINT8, peer, place.comm, request)
                                      : tributary_recv(receive, *bytes, TRIBUTARY_UINT8, peer, place.comm, request);
  return outcome(status, call, place.comm);
}

}  // namespace
}  // namespace tributary::jax

using namespace tributary::jax;  // NOLINT(google-build-using-namespace): the rest of the file is MPI's side

extern "C" {

// XLA ignores what MPI_Init_thread returns, so the later calls repeat the error.
int MPIABI_Init_thread(int*, char***, int, int* provided) {
  *provided = kThreadMultiple;
  return place_of("MPI_Init_thread", kCommWorld).code;
}

int MPIABI_Init(int*, char***) {
  return place_of("MPI_Init", kCommWorld).code;
}

int MPIABI_Initialized(int* flag) {
  *flag = job().find(kCommWorld)->comm() != nullptr || job().finished() ? 1 : 0;
  return kSuccess;
}

int MPIABI_Finalized(int* flag) {
  *flag = job().finished() ? 1 : 0;
  return kSuccess;
}

int MPIABI_Finalize() {
  job().finish();
  return kSuccess;
}

int MPIABI_Query_thread(int* provided) {
  *provided = kThreadMultiple;
  return kSuccess;
}

// XLA makes communicators only on MPI's main thread, but calls from any thread. Here every thread may make them.
int MPIABI_Is_thread_main(int* flag) {
  *flag = 1;
  return kSuccess;
}

int MPIABI_Abort(Comm handle, int code) {
  const Place place = place_of("MPI_Abort", handle);
  if (place.comm != nullptr) tributary_comm_abort_because(place.comm, "the program called MPI_Abort");
  std::_Exit(code);
}

int MPIABI_Get_version(int* version, int* subversion) {
  *version = 3;
  *subversion = 1;
  return kSuccess;
}

int MPIABI_Get_library_version(char* version, int* length) {
  copy_text(kLibraryVersion, version, kLibraryVersionBytes, length);
  return kSuccess;
}

int MPIABI_Error_string(int code, char* text, int* length) {
  const std::string sentence = last_sentence();
  copy_text(sentence.empty() ? "error " + std::to_string(code) : sentence, text, kErrorStringBytes, length);
  return kSuccess;
}

int MPIABI_Error_class(int code, int* error_class) {
  *error_class = code;
  return kSuccess;
}

double MPIABI_Wtime() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double MPIABI_Wtick() {
  return 1e-9;
}

int MPIABI_Comm_rank(Comm handle, int* rank) {
  const Place place = place_of("MPI_Comm_rank", handle);
  *rank = place.held->rank();
  return place.code;
}

int MPIABI_Comm_size(Comm handle, int* size) {
  const Place place = place_of("MPI_Comm_size", handle);
  *size = place.held->size();
  return place.code;
}

int MPIABI_Comm_split(Comm parent, int color, int key, Comm* made) {
  *made = kCommNull;
  if (parent != kCommWorld) return fail(kErrorComm, "MPI_Comm_split", "the library splits only MPI_COMM_WORLD");
  *made = job().split({.color = color, .key = key});
  return *made == kCommNull ? kSuccess : place_of("MPI_Comm_split", *made).code;
}

int MPIABI_Comm_free(Comm* handle) {
  job().free(*handle);
  *handle = kCommNull;
  return kSuccess;
}

int MPIABI_Allreduce(const void* send, void* receive, int count, Datatype type, Op op, Comm handle) {
  const Place place = place_of("MPI_Allreduce", handle);
  if (place.code != kSuccess) return place.code;
  int code = kSuccess;
  const auto reduction = reduction_of("MPI_Allreduce", count, type, op, code);
  return reduction ? outcome(all_reduce(*reduction, send, receive, place.comm), "MPI_Allreduce", place.comm) : code;
}

int MPIABI_Reduce_scatter(const void* send, void* receive, const int* counts, Datatype type, Op op, Comm handle) {
  const Place place = place_of("MPI_Reduce_scatter", handle);
  if (place.code != kSuccess) return place.code;
  const std::span<const int> all(counts, static_cast<std::size_t>(place.held->size()));
  if (std::ranges::adjacent_find(all, std::ranges::not_equal_to{}) != all.end()) {
    return fail(kErrorCount, "MPI_Reduce_scatter", "the ranks' counts differ; the library has only equal counts");
  }
  int code = kSuccess;
  const auto reduction = reduction_of("MPI_Reduce_scatter", all.front(), type, op, code);
  if (!reduction) return code;
  return outcome(reduce_scatter(*reduction, send, receive, place.comm), "MPI_Reduce_scatter", place.comm);
}

int MPIABI_Allgather(const void* send, int count, Datatype type, void* receive, int, Datatype, Comm handle) {
  const Place place = place_of("MPI_Allgather", handle);
  if (place.code != kSuccess) return place.code;
  int code = kSuccess;
  const auto bytes = bytes_of("MPI_Allgather", count, type, code);
  if (!bytes) return code;
  return outcome(tributary_all_gather(send, receive, *bytes, TRIBUTARY_UINT8, place.comm, nullptr), "MPI_Allgather",
                 place.comm);
}

int MPIABI_Isend(const void* send, int count, Datatype type, int peer, int tag, Comm handle, Request* request) {
  *request = kRequestNull;
  return start_message("MPI_Isend", send, nullptr, count, type, peer, tag, handle,
                       reinterpret_cast<tributary_request**>(request));
}

int MPIABI_Irecv(void* receive, int count, Datatype type, int peer, int tag, Comm handle, Request* request) {
  *request = kRequestNull;
  return start_message("MPI_Irecv", nullptr, receive, count, type, peer, tag, handle,
                       reinterpret_cast<tributary_request**>(request));
}

int MPIABI_Wait(Request* request, MessageStatus* status) {
  if (*request == kRequestNull) return kSuccess;
  auto* const waited = reinterpret_cast<tributary_request*>(*request);  // NOLINT(performance-no-int-to-ptr)
  *request = kRequestNull;
  set_status(status, 0, 0);
  return outcome(tributary_wait(waited, -1), "MPI_Wait", nullptr);
}

int MPIABI_Sendrecv(const void* send, int send_count, Datatype send_type, int to, int send_tag, void* receive,
                    int receive_count, Datatype receive_type, int from, int receive_tag, Comm handle,
                    MessageStatus* status) {
  tributary_request* received = nullptr;
  tributary_request* sent = nullptr;
  const char* const call = "MPI_Sendrecv";
  int code = start_message(call, nullptr, receive, receive_count, receive_type, from, receive_tag, handle, &received);
  if (code != kSuccess) return code;
  code = start_message(call, send, nullptr, send_count, send_type, to, send_tag, handle, &sent);
  // The receive must have ended before the buffer is the caller's again. If the send failed, so does the communicator.
  const int send_code = code == kSuccess ? outcome(tributary_wait(sent, -1), call, nullptr) : code;
  const int receive_code = outcome(tributary_wait(received, -1), call, nullptr);
  set_status(status, from, receive_tag);
  return send_code != kSuccess ? send_code : receive_code;
}
}
