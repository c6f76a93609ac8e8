#include "client/plugins/nccl/p2p/net.h"

#include "client/plugins/nccl/devices.h"
#include "client/plugins/nccl/guard.h"
#include "client/plugins/nccl/p2p/listen_comm.h"
#include "client/plugins/nccl/p2p/receive_comm.h"
#include "client/plugins/nccl/p2p/send_comm.h"
#include "client/plugins/nccl/settings.h"

namespace tributary::nccl::net {
namespace {

using enum abi::Result;

/// Before v11 NCCL has no context: one for the process.
NetContext& context_of(void* context) {
  static NetContext* const process = new NetContext;
  return context == nullptr ? *process : *static_cast<NetContext*>(context);
}

std::string list_devices() {
  std::string text;
  for (const NetDevice& device : tributary::nccl::devices()) {
    text += (text.empty() ? "" : ", ") + device.name + " (" + device.address + ", " +
            std::to_string(device.speed_mbps) + " Mb/s" + (device.pci_path.empty() ? ", not on PCI" : "") + ")";
  }
  return text.empty() ? "none" : text;
}

template <class Comm>
abi::Result close(const char* call, void* comm) {
  return guarded(call, [&] {
    const std::unique_ptr<Comm> gone(static_cast<Comm*>(comm));
    return success;
  });
}

}  // namespace

abi::Result init(void** context, abi::Logger logger) {
  return guarded("net init", [&] {
    set_logger(logger);
    if (context != nullptr) *context = std::make_unique<NetContext>().release();  // finalize() deletes it
    info("point-to-point over tcp; devices: " + list_devices());
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
      warn("a handle that this plugin has not made: every rank must use the same plugin");
      return invalid_usage;
    }
    if (to->pending == nullptr) {
      auto engine = context_of(context).engine(device);
      if (!engine) return invalid_argument;
      to->pending = std::make_unique<SendComm>(std::move(engine), *to).release();
      to->write(handle);
    }
    auto* comm = static_cast<SendComm*>(to->pending);
    const auto opening = comm->opening();
    if (opening == SendComm::Opening::under_way) return success;
    to->pending = nullptr;
    to->write(handle);
    if (opening == SendComm::Opening::open) {
      *send_comm = comm;
      return success;
    }
    close_send(comm);
    return remote_error;
  });
}

abi::Result accept(void* listen_comm, void** receive_comm) {
  return guarded("net accept", [&] {
    *receive_comm = static_cast<ListenComm*>(listen_comm)->accept().release();
    return success;
  });
}

// The socket needs to know nothing of a buffer beforehand.
abi::Result register_memory(void* comm, void*, std::size_t, int pointer_kind, void** memory) {
  *memory = nullptr;
  if (pointer_kind != abi::kPointerHost) return invalid_argument;
  *memory = comm;
  return success;
}

abi::Result deregister_memory(void*, void*) {
  return success;
}

abi::Result send(void* send_comm, void* data, std::size_t bytes, int tag, void** request) {
  return guarded("isend", [&] {
    *request = nullptr;
    Request* posted = nullptr;
    const abi::Result result = static_cast<SendComm*>(send_comm)->send(data, bytes, tag, &posted);
    *request = posted;
    return result;
  });
}

// *request may come in as 1: NCCL would not mind a receive without completion. It gets one all the same.
abi::Result receive(void* receive_comm, int n, void** data, const std::size_t* bytes, const int* tags, void** request) {
  return guarded("irecv", [&] {
    *request = nullptr;
    if (n != kReceivesMax) return invalid_argument;
    Request* posted = nullptr;
    const abi::Result result = static_cast<ReceiveComm*>(receive_comm)->receive(data[0], bytes[0], tags[0], &posted);
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
  return close<SendComm>("closeSend", send_comm);
}

abi::Result close_receive(void* receive_comm) {
  return close<ReceiveComm>("closeRecv", receive_comm);
}

abi::Result close_listen(void* listen_comm) {
  return close<ListenComm>("closeListen", listen_comm);
}

abi::Result finalize(void* context) {
  return close<NetContext>("finalize", context);
}

}  // namespace tributary::nccl::net
