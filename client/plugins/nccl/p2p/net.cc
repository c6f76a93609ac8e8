#include "client/plugins/nccl/p2p/net.h"

#include <map>
#include <mutex>

#include "client/plugins/nccl/devices.h"
#include "client/plugins/nccl/guard.h"
#include "client/plugins/nccl/p2p/listen_comm.h"
#include "client/plugins/nccl/p2p/net_memory.h"
#include "client/plugins/nccl/p2p/receive_comm.h"
#include "client/plugins/nccl/p2p/send_comm.h"
#include "client/plugins/nccl/settings.h"
#include "client/plugins/nccl/wire.h"
#include "client/plugins/nccl/wrapped/other_plugin.h"

namespace tributary::nccl::net {
namespace {

using enum abi::Result;

int class_of(const abi::CommConfig* config) noexcept {
  return config == nullptr ? abi::kNoTrafficClass : config->traffic_class;
}

/// Returns the process's context for connections of this traffic class.
NetContext& context_of_process(int traffic_class) {
  static auto* const mutex = new std::mutex;  // never destroyed: NCCL may call the plugin while the process ends
  static auto* const contexts = new std::map<int, NetContext>;
  const std::lock_guard lock(*mutex);
  return contexts->try_emplace(traffic_class, traffic_class).first->second;
}

/// Before v11, NCCL passes no context: all its communicators then share the process's contexts.
NetContext& context_of(void* context, const abi::CommConfig* config = nullptr) {
  return context == nullptr ? context_of_process(class_of(config)) : *static_cast<NetContext*>(context);
}

std::string list_devices() {
  std::string text;
  for (const NetDevice& device : tributary::nccl::devices()) {
    text += (text.empty() ? "" : ", ") + device.name + " (" + device.address + ", ";
    if (!device.rdma_device.empty()) text += device.rdma_device + ":" + std::to_string(device.port) + ", ";
    text += std::to_string(device.speed_mbps) + " Mb/s" + (device.pci_path.empty() ? ", not on PCI" : "") + ")";
  }
  return text.empty() ? "none" : text;
}

/// Returns the reason why the plugin that TRIBUTARY_NCCL_NET names does not take these calls; empty if none is named.
std::string missing_other(int version) {
  const OtherPlugin* const other = OtherPlugin::process();
  if (other == nullptr) return {};
  if (!other->failure().empty()) return other->failure();
  return "TRIBUTARY_NCCL_NET=" + other->name() + " has no table of version " + std::to_string(version) +
         " or of an older version that this plugin knows, and NCCL asks for this version.";
}

template <class Gone>
abi::Result close(const char* call, void* pointer) {
  return guarded(call, [&] {
    const std::unique_ptr<Gone> gone(static_cast<Gone*>(pointer));
    return success;
  });
}

NetComm& connection(void* comm) {
  return *static_cast<NetComm*>(comm);
}

/// Writes the pointer that NCCL gets for either end of a connection. It must point to a NetComm: NCCL registers memory
/// with both ends.
void hand_out(NetComm* comm, void** to) {
  *to = comm;
}

}  // namespace

abi::Result init(int version, void** context, abi::Logger logger, const abi::CommConfig* config,
                 abi::ProfilerCallback profiler) {
  return guarded("net init", [&] {
    set_logger(logger);
    set_profiler(profiler);
    if (context != nullptr) *context = nullptr;
    if (const std::string reason = missing_other(version); !reason.empty()) {
      warn(reason);
      return invalid_usage;
    }
    if (!wire()) {
      warn(wire().error().message);
      return invalid_usage;
    }
    if (context != nullptr)
      *context = std::make_unique<NetContext>(class_of(config)).release();  // finalize() deletes it
    info("net v" + std::to_string(version) + ": point-to-point over " + std::string(to_string(*wire())) +
         "; devices: " + list_devices());
    return success;
  });
}

abi::Result devices(int* count) {
  return guarded("net devices", [&] {
    *count = static_cast<int>(tributary::nccl::devices().size());
    return success;
  });
}

abi::Result listen(void* context, int device, void* handle, void** listen_comm) {
  return guarded("net listen", [&] {
    *listen_comm = nullptr;
    auto engine = context_of(context).engine(device);
    if (!engine) return invalid_argument;
    auto comm = ListenComm::open(std::move(engine), *device_at(device), handle);
    if (!comm) {
      warn("cannot listen on " + device_at(device)->name + ": " + comm.error().message);
      return system_error;
    }
    *listen_comm = comm->release();
    return success;
  });
}

abi::Result connect(void* context, int device, void* handle, void** send_comm, const abi::CommConfig* config) {
  return guarded("net connect", [&] {
    *send_comm = nullptr;
    auto to = NetHandle::read(handle);
    if (!to) {
      warn("a handle that this plugin has not made: every rank must use the same version of the same plugin");
      return invalid_usage;
    }
    if (to->wire != *wire()) {
      warn("the other side of a connection listens over " + std::string(to_string(to->wire)) + ", and this side uses " +
           std::string(to_string(*wire())) +
           ": TRIBUTARY_TRANSPORT, and what it leads to, must be the same on every node");
      return invalid_usage;
    }
    NetContext& ours = context_of(context, config);
    if (to->pending == nullptr) {
      auto engine = ours.engine(device);
      if (!engine) return invalid_argument;
      to->pending = ours.keep(SendComm::connect(std::move(engine), *to));
      to->write(handle);
    }
    auto* const pending = static_cast<SendComm*>(to->pending);
    const auto opening = pending->opening();
    if (opening == SendComm::Opening::under_way) return success;
    to->pending = nullptr;
    to->write(handle);
    auto comm = ours.take(pending);
    if (opening != SendComm::Opening::open) return remote_error;
    hand_out(comm.release(), send_comm);
    return success;
  });
}

abi::Result accept(void* listen_comm, void** receive_comm) {
  return guarded("net accept", [&] {
    hand_out(static_cast<ListenComm*>(listen_comm)->accept().release(), receive_comm);
    return success;
  });
}

abi::Result register_memory(void* comm, void* data, std::size_t bytes, int pointer_kind, void** memory) {
  return guarded("regMr", [&] {
    *memory = nullptr;
    if (pointer_kind != abi::kPointerHost) return invalid_argument;  // the properties offer only host memory
    const std::span region(static_cast<const std::byte*>(data), bytes);
    *memory = std::make_unique<NetMemory>(connection(comm).shared_engine(), region).release();
    return success;
  });
}

abi::Result deregister_memory(void*, void* memory) {
  return close<NetMemory>("deregMr", memory);
}

abi::Result send(void* send_comm, void* data, std::size_t bytes, int tag, void** request, void* parent) {
  return guarded("isend", [&] {
    *request = nullptr;
    Request* posted = nullptr;
    const abi::Result result = static_cast<SendComm&>(connection(send_comm)).send(data, bytes, tag, &posted);
    if (posted != nullptr) posted->event.start(parent, ProfilerEvent::Kind::send, bytes);
    *request = posted;
    return result;
  });
}

// NCCL may pass 1 in *request, which means that this receive needs no completion. The caller gets a completion anyway.
abi::Result receive(void* receive_comm, int n, void** data, const std::size_t* bytes, const int* tags, void** request,
                    void* parent) {
  return guarded("irecv", [&] {
    *request = nullptr;
    if (n != kReceivesMax) return invalid_argument;
    Request* posted = nullptr;
    const abi::Result result =
        static_cast<ReceiveComm&>(connection(receive_comm)).receive(data[0], bytes[0], tags[0], &posted);
    if (posted != nullptr) posted->event.start(parent, ProfilerEvent::Kind::receive, bytes[0]);
    *request = posted;
    return result;
  });
}

abi::Result flush(void** request) {
  *request = finished_request();
  return success;
}

abi::Result test(void* request, int* done, int* sizes) {
  *done = 0;
  return guarded("test", [&] {
    auto& posted = *static_cast<Request*>(request);
    const abi::Result result = posted.test(done, sizes);
    if (result != success || *done != 0) posted.event.stop();
    return result;
  });
}

abi::Result close_send(void* send_comm) {
  return close<NetComm>("closeSend", send_comm);
}

abi::Result close_receive(void* receive_comm) {
  return close<NetComm>("closeRecv", receive_comm);
}

abi::Result close_listen(void* listen_comm) {
  return close<ListenComm>("closeListen", listen_comm);
}

abi::Result finalize(void* context) {
  return close<NetContext>("finalize", context);
}

}  // namespace tributary::nccl::net
