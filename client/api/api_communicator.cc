// The functions of tributary.h for unique ids and communicators.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "client/api/arguments.h"
#include "client/api/guard.h"
#include "client/api/interfaces.h"
#include "client/api/io_threads.h"
#include "client/api/meeting.h"
#include "client/api/transports.h"
#include "service-kit/variables.h"
#include "tributary/protocol/reason.h"

using namespace tributary;          // NOLINT(google-build-using-namespace): this file defines C names for it
using namespace tributary::client;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::size_t kReasonBytesMax = 400;

std::unexpected<Error> null_argument(const char* name) {
  return fail(Errc::bad_argument, std::string(name) + " is NULL");
}

Error with_function(const char* function, Error error) {
  if (!error.message.starts_with(function)) error.message = std::string(function) + ": " + error.message;
  return error;
}

Result<UniqueIdBytes> make_unique_id(const tributary_config* config) {
  auto settings = load_settings(config);
  if (!settings) return std::unexpected(settings.error());
  auto transport = choose_transport(settings->transports, settings->dpdk);
  if (!transport) return std::unexpected(transport.error());
  const Environment environment = [](const char* name) { return std::getenv(name); };
  RdmaWish rdma = rdma_wish(*settings);
  if (*transport == "verbs") {
    auto chosen = rdma_addresses(*settings, environment);
    if (!chosen) return std::unexpected(chosen.error());
    rdma.rails = std::move(*chosen);
    return open_meeting(*transport, rdma.rails.front(), {}, settings->security, settings->dpdk, rdma, settings->udp);
  }
  auto address = *transport == "dpdk" ? Result<std::string>(settings->dpdk.address())
                                      : address_to_advertise(settings->interface_name, environment);
  if (!address) return std::unexpected(address.error());
  return open_meeting(*transport, *address, tcp_wish(*settings, *address), settings->security, settings->dpdk, rdma,
                      settings->udp);
}

Result<UniqueId> decode(const tributary_unique_id& id) {
  UniqueIdBytes bytes{};
  std::memcpy(bytes.data(), id.bytes, bytes.size());
  return decode_unique_id(bytes);
}

/// Warns, once in a process, about names in the environment that no program reads. Only rank 0 warns.
void tell_misspelt_variables(int rank) {
  static std::once_flag told;
  if (rank != 0) return;
  std::call_once(told, [] {
    for (const std::string& sentence : service::misspelt_variables()) log(LogLevel::warn, "tributary: " + sentence);
  });
}

Result<tributary_comm*> make_comm(int nranks, const tributary_unique_id* id, int rank, const tributary_config* config) {
  if (id == nullptr) return null_argument("id");
  if (auto ok = check_group("tributary_comm_init_rank", nranks, rank); !ok) return std::unexpected(ok.error());
  auto decoded = decode(*id);
  if (!decoded) return std::unexpected(decoded.error());
  auto settings = load_settings(config);
  if (!settings) return std::unexpected(settings.error());
  static std::once_flag formatted;
  std::call_once(formatted, [&settings] { set_log_format(settings->log_format); });
  set_log_level(settings->log);
  tell_misspelt_variables(rank);
  auto comm = Comm::create(static_cast<std::uint32_t>(nranks), *decoded, static_cast<std::uint32_t>(rank), *settings);
  if (!comm) return std::unexpected(comm.error());
  tributary_comm* handle = comms().insert(*comm);
  if (handle != nullptr) return handle;
  (*comm)->abort("this process has too many communicators; destroy some");
  return fail(Errc::exhausted, "this process has too many communicators; destroy some");
}

tributary_path path_of(const CommunicatorInfo& info) {
  if (info.local) return TRIBUTARY_PATH_LOCAL;
  return info.in_network ? TRIBUTARY_PATH_IN_NETWORK : TRIBUTARY_PATH_FALLBACK;
}

tributary_info to_c(const CommunicatorInfo& from) {
  tributary_info info{};
  info.path = path_of(from);
  info.epoch = from.epoch;
  info.lanes = from.lanes;
  info.levels = from.levels;
  info.window = from.window;
  info.segment_bytes = from.segment_bytes;
  info.operations = from.operations;
  info.bytes_in_network = from.bytes_in_network;
  info.bytes_fallback = from.bytes_fallback;
  info.failovers = from.failovers;
  info.returns = from.returns;
  info.last_pause_us = from.last_pause_us;
  info.longest_pause_us = from.longest_pause_us;
  cut_before_code(from.reason, sizeof info.reason - 1).copy(info.reason, sizeof info.reason - 1);
  info.bytes_local = from.bytes_local;
  info.hosts = from.hosts;
  info.direct = from.direct;
  info.lanes_shared = from.lanes_shared;
  info.links = from.links;
  from.attach_refusal.copy(info.attach_refusal, sizeof info.attach_refusal - 1);
  info.links_shared = from.links_shared;
  from.transport.copy(info.transport, sizeof info.transport - 1);
  info.strangers_turned_away = from.strangers_turned_away;
  return info;
}

template <class Read>
tributary_status read_int(const char* function, const tributary_comm* handle, int* value, Read read) {
  return guarded(function, [&]() -> tributary_status {
    const auto comm = live(function, handle);
    if (!comm) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    if (value == nullptr)
      return report(Errc::bad_argument, std::string(function) + ": the address for the result is NULL",
                    &comm->errors());
    *value = static_cast<int>(read(*comm));
    return TRIBUTARY_OK;
  });
}

/// Ends the handle and the object behind it.
template <class End>
tributary_status end_comm(const char* function, tributary_comm* handle, End end) {
  return guarded(function, [&]() -> tributary_status {
    if (!live(function, handle)) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    const auto comm = comms().remove(handle);
    if (!comm)
      return report(Errc::bad_argument, std::string(function) + ": another thread is ending this communicator");
    const Status status = end(*comm);
    return status ? TRIBUTARY_OK : report(with_function(function, status.error()));
  });
}

}  // namespace

const char* tributary_status_string(tributary_status status) {
  switch (status) {
    case TRIBUTARY_OK:
      return "ok";
    case TRIBUTARY_ERROR_BAD_ARGUMENT:
      return "bad argument";
    case TRIBUTARY_ERROR_BAD_CONFIG:
      return "bad configuration";
    case TRIBUTARY_ERROR_TIMED_OUT:
      return "timed out";
    case TRIBUTARY_ERROR_PEER_GONE:
      return "a rank is gone";
    case TRIBUTARY_ERROR_MISMATCH:
      return "ranks called different operations";
    case TRIBUTARY_ERROR_EXHAUSTED:
      return "out of memory or of a bounded resource";
    case TRIBUTARY_ERROR_UNSUPPORTED:
      return "not supported here";
    case TRIBUTARY_ERROR_UNREACHABLE:
      return "unreachable";
    case TRIBUTARY_ERROR_DENIED:
      return "denied";
    case TRIBUTARY_ERROR_ABORTED:
      return "aborted";
    case TRIBUTARY_ERROR_SYSTEM:
      return "a system call failed";
    case TRIBUTARY_ERROR_INTERNAL:
      return "internal error";
  }
  return "unknown status";
}

const char* tributary_last_error(const tributary_comm* handle) {
  try {
    const auto comm = handle == nullptr ? nullptr : comms().find(handle);
    return last_error(comm ? &comm->errors() : nullptr);
  } catch (const std::exception&) {
    return "the text of the last error is lost";
  }
}

tributary_status tributary_version(int* major, int* minor, int* patch) {
  if (major != nullptr) *major = TRIBUTARY_VERSION_MAJOR;
  if (minor != nullptr) *minor = TRIBUTARY_VERSION_MINOR;
  if (patch != nullptr) *patch = TRIBUTARY_VERSION_PATCH;
  return TRIBUTARY_OK;
}

tributary_status tributary_get_unique_id(tributary_unique_id* id) {
  return tributary_get_unique_id_config(id, nullptr);
}

tributary_status tributary_get_unique_id_config(tributary_unique_id* id, const tributary_config* config) {
  constexpr const char* function = "tributary_get_unique_id";
  return guarded(function, [&]() -> tributary_status {
    if (id == nullptr) return report(with_function(function, null_argument("id").error()));
    const auto bytes = make_unique_id(config);
    if (!bytes) return report(with_function(function, bytes.error()));
    std::memcpy(id->bytes, bytes->data(), bytes->size());
    return TRIBUTARY_OK;
  });
}

tributary_status tributary_release_unique_id(const tributary_unique_id* id) {
  constexpr const char* function = "tributary_release_unique_id";
  return guarded(function, [&]() -> tributary_status {
    if (id == nullptr) return report(with_function(function, null_argument("id").error()));
    const auto decoded = decode(*id);
    if (!decoded) return report(with_function(function, decoded.error()));
    take_meeting(*decoded).reset();
    return TRIBUTARY_OK;
  });
}

tributary_status tributary_comm_init_rank(tributary_comm** comm, int nranks, const tributary_unique_id* id, int rank) {
  return tributary_comm_init_rank_config(comm, nranks, id, rank, nullptr);
}

tributary_status tributary_comm_init_rank_config(tributary_comm** comm, int nranks, const tributary_unique_id* id,
                                                 int rank, const tributary_config* config) {
  constexpr const char* function = "tributary_comm_init_rank";
  return guarded(function, [&]() -> tributary_status {
    if (comm == nullptr) return report(with_function(function, null_argument("comm").error()));
    *comm = nullptr;
    const auto made = make_comm(nranks, id, rank, config);
    if (!made) return report(with_function(function, made.error()));
    *comm = *made;
    return TRIBUTARY_OK;
  });
}

tributary_status tributary_comm_rank(const tributary_comm* comm, int* rank) {
  return read_int("tributary_comm_rank", comm, rank, [](const Comm& c) { return c.rank(); });
}

tributary_status tributary_comm_size(const tributary_comm* comm, int* size) {
  return read_int("tributary_comm_size", comm, size, [](const Comm& c) { return c.size(); });
}

tributary_status tributary_comm_info(const tributary_comm* handle, tributary_info* info) {
  constexpr const char* function = "tributary_comm_info";
  return guarded(function, [&]() -> tributary_status {
    const auto comm = live(function, handle);
    if (!comm) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    if (info == nullptr) return report(with_function(function, null_argument("info").error()), &comm->errors());
    if (info->struct_bytes < sizeof(std::size_t)) {
      return report(Errc::bad_argument,
                    std::string(function) + ": info->struct_bytes must be set to sizeof(tributary_info)",
                    &comm->errors());
    }
    const auto now = comm->info();
    if (!now) return report(with_function(function, now.error()), &comm->errors());
    tributary_info ours = to_c(*now);
    ours.struct_bytes = info->struct_bytes;  // do not change further members of a newer header
    std::memcpy(info, &ours, std::min(info->struct_bytes, sizeof ours));
    return TRIBUTARY_OK;
  });
}

tributary_status tributary_comm_finalize(tributary_comm* handle) {
  constexpr const char* function = "tributary_comm_finalize";
  return guarded(function, [&]() -> tributary_status {
    const auto comm = live(function, handle);
    if (!comm) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    const Status status = comm->finalize();
    return status ? TRIBUTARY_OK : report(with_function(function, status.error()), &comm->errors());
  });
}

tributary_status tributary_comm_destroy(tributary_comm* comm) {
  return end_comm("tributary_comm_destroy", comm, [](Comm& c) { return c.destroy(); });
}

tributary_status tributary_comm_abort(tributary_comm* comm) {
  return end_comm("tributary_comm_abort", comm, [](Comm& c) {
    c.abort("tributary_comm_abort was called");
    return Status{};
  });
}

tributary_status tributary_comm_abort_because(tributary_comm* comm, const char* reason) {
  constexpr const char* function = "tributary_comm_abort_because";
  if (reason == nullptr) {
    return guarded(function, [&] { return report(with_function(function, null_argument("reason").error())); });
  }
  return end_comm(function, comm, [reason](Comm& c) {
    c.abort(std::string(reason, strnlen(reason, kReasonBytesMax)));
    return Status{};
  });
}
