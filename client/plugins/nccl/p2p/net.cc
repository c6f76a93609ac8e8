#include "client/plugins/nccl/p2p/net.h"

#include "client/plugins/nccl/devices.h"
#include "client/plugins/nccl/guard.h"
#include "client/plugins/nccl/p2p/listen_comm.h"
#include "client/plugins/nccl/p2p/net_memory.h"
#include "client/plugins/nccl/p2p/receive_comm.h"
#include "client/plugins/nccl/p2p/send_comm.h"
#include "client/plugins/nccl/settings.h"
#include "client/plugins/nccl/wire.h"

namespace tributary::nccl::net {
namespace {

using enum abi::Result;

/// Before v11, NCCL passes no context: all its communicators then share the process's context.
NetContext& context_of(void* context) {
  static NetContext* const process = new NetContext;
  return context == nullptr ? *process : *static_cast<NetContext*>(context);
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

abi::Result init(int version, void** context, abi::Logger logger) {
  return guarded("net init", [&] {
    set_logger(logger);
    if (context != nullptr) *context = nullptr;
    if (!wire()) {
      warn(wire().error().message);
      return invalid_usage;
    }
    if (context != nullptr) *context = std::make_unique<NetContext>().release();  // finalize() deletes the context
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

abi::Result connect(void* context, int device, void* handle, void** send_comm) {
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
    if (to->pending == nullptr) {
      auto engine = context_of(context).engine(device);
      if (!engine) return invalid_argument;
      to->pending = SendComm::connect(std::move(engine), *to).release();
      to->write(handle);
    }
    auto* comm = static_cast<SendComm*>(to->pending);
    const auto opening = comm->opening();
    if (opening == SendComm::Opening::under_way) return success;
    to->pending = nullptr;
    to->write(handle);
    if (opening == SendComm::Opening::open) {
      hand_out(comm, send_comm);
      return success;
    }
    const std::unique_ptr<SendComm> gone(comm);
    return remote_error;
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

abi::Result send(void* send_comm, void* data, std::size_t bytes, int tag, void** request) {
  return guarded("isend", [&] {
    *request = nullptr;
    Request* posted = nullptr;
    const abi::Result result = static_cast<SendComm&>(connection(send_comm)).send(data, bytes, tag, &posted);
    *request = posted;
    return result;
  });
}

// NCCL may pass 1 in *request, which means that this receive needs no completion. The caller gets a completion anyway.
abi::Result receive(void* receive_comm, int n, void** data, const std::size_t* bytes, const int* tags, void** request) {
  return guarded("irecv", [&] {
    *request = nullptr;
    if (n != kReceivesMax) return invalid_argument;
    Request* posted = nullptr;
    const abi::Result result =
        static_cast<ReceiveComm&>(connection(receive_comm)).receive(data[0], bytes[0], tags[0], &posted);
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
  return guarded("test", [&] { return static_cast<Request*>(request)->test(done, sizes); });
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
