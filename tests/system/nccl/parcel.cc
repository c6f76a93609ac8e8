// A small net plugin that stands for another vendor's: messages over loopback TCP, two devices, and dma-buf on offer.
// It exports the tables of the versions from PARCEL_OLDEST to PARCEL_NEWEST. As some plugins do, it fills a part of its
// tables only in init(). Functions that not all builds need are inline.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>

#include "client/plugins/nccl/abi/net_versions.h"

namespace tributary::nccl {
namespace {

using abi::DeviceHandle;
using abi::Result;
using enum abi::Result;

constexpr int kDevices = 2;
constexpr std::uint64_t kMagic = 0x6c6563726170;

std::atomic<int> g_inits{0}, g_traffic_class{-2}, g_sent{0};

/// Says at the end of the process how many messages went through this plugin.
struct LastWord {
  ~LastWord() { std::fprintf(stderr, "parcel: sent %d messages\n", g_sent.load()); }
} g_last_word;

struct Handle {
  std::uint64_t magic = kMagic;
  std::uint16_t port = 0;
};

struct Comm;
struct Message {
  Comm* comm;
  bool sends;
  std::byte* data;
  std::uint64_t bytes;  // bytes to send, or room for bytes to receive
  std::uint64_t head = 0;
  std::size_t head_moved = 0, moved = 0;
};
struct Comm {
  int socket = -1;
  std::deque<Message*> queue;
  ~Comm() { ::close(socket); }
};

/// Moves some bytes. Returns false if the connection has ended.
bool move(const Message& message, void* at, std::size_t bytes, std::size_t& moved) {
  const ssize_t n = message.sends ? ::send(message.comm->socket, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL)
                                  : ::recv(message.comm->socket, at, bytes, MSG_DONTWAIT);
  if (n > 0) moved += static_cast<std::size_t>(n);
  return n > 0 || bytes == 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/// Returns true if the message has ended; `good` turns false if the connection has.
bool advance(Message& message, bool& good) {
  while (good && message.head_moved < sizeof message.head) {
    const std::size_t before = message.head_moved;
    good = move(message, reinterpret_cast<std::byte*>(&message.head) + before, sizeof message.head - before,
                message.head_moved);
    if (message.head_moved == before) return false;
  }
  if (!message.sends && good) good = message.head <= message.bytes;
  if (good && message.moved < message.head)
    good = move(message, message.data + message.moved, message.head - message.moved, message.moved);
  return good && message.head_moved == sizeof message.head && message.moved == message.head;
}

Result post(void* comm, bool sends, void* data, std::size_t bytes, void** request) {
  auto* const ours = static_cast<Comm*>(comm);
  auto message = std::make_unique<Message>(
      Message{ours, sends, static_cast<std::byte*>(data), bytes, sends ? std::uint64_t{bytes} : 0});
  if (sends) ++g_sent;
  ours->queue.push_back(message.get());
  *request = message.release();  // test() deletes it
  return success;
}

Result test(void* request, int* done, int* sizes) {
  auto* const mine = static_cast<Message*>(request);
  auto& queue = mine->comm->queue;
  bool good = true;
  while (!queue.empty() && advance(*queue.front(), good)) queue.pop_front();
  *done = std::ranges::find(queue, mine) == queue.end() ? 1 : 0;
  if (!good) return remote_error;
  if (*done == 0) return success;
  if (sizes != nullptr) *sizes = static_cast<int>(mine->head);
  delete mine;
  return success;
}

Result devices(int* count) {
  *count = kDevices;
  return success;
}

template <class Properties>
Result get_properties(int device, Properties* properties) {
  static std::array<char, 8> names[kDevices]{{"parcel0"}, {"parcel1"}};
  if (device < 0 || device >= kDevices) return invalid_argument;
  *properties = {};
  properties->name = names[device].data();
  properties->guid = 0x70 + static_cast<std::uint64_t>(device);
  properties->pointer_support = abi::kPointerHost | abi::kPointerDmaBuf;
  properties->speed_mbps = 200'000;
  properties->port = 1;
  properties->latency_us = 1.5F;
  properties->comms_max = 1024;
  properties->receives_max = 8;
  if constexpr (requires { properties->virtual_device; }) {
    properties->virtual_device.devices = 1;
    properties->virtual_device.device[0] = device;
    properties->p2p_bytes_max = properties->collective_bytes_max = std::size_t{1} << 31;
  }
  return success;
}

Result listen(void*, int, void* handle, void** comm) {
  auto ours = std::make_unique<Comm>();
  ours->socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  if (::bind(ours->socket, reinterpret_cast<sockaddr*>(&at), length) != 0 || ::listen(ours->socket, 16) != 0 ||
      ::getsockname(ours->socket, reinterpret_cast<sockaddr*>(&at), &length) != 0)
    return system_error;
  const Handle written{.port = at.sin_port};
  std::memcpy(handle, &written, sizeof written);
  *comm = ours.release();
  return success;
}

void take(int socket, void** comm) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  auto ours = std::make_unique<Comm>();
  ours->socket = socket;
  *comm = ours.release();
}

Result connect(void*, int, void* handle, void** comm, DeviceHandle**) {
  Handle to;
  std::memcpy(&to, handle, sizeof to);
  if (to.magic != kMagic) return invalid_usage;
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = to.port;
  if (::connect(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return system_error;
  take(socket, comm);
  return success;
}

Result accept(void* listen_comm, void** comm, DeviceHandle**) {
  *comm = nullptr;
  const int socket = ::accept4(static_cast<Comm*>(listen_comm)->socket, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket >= 0) take(socket, comm);
  return success;
}

template <class Size>
Result register_memory(void*, void* data, Size, int, void** memory) {
  *memory = data;
  return success;
}
Result register_dma_buf(void*, void* data, std::size_t, int, std::uint64_t, int, void** memory) {
  *memory = data;
  return success;
}
Result deregister_memory(void*, void*) {
  return success;
}

Result flush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return success;
}

Result close_comm(void* comm) {
  delete static_cast<Comm*>(comm);
  return success;
}

Result make_virtual_device(int* device, auto* parts) {
  *device = kDevices + parts->devices;
  return success;
}

void fill_rest();

Result init_old(abi::Logger) {
  ++g_inits;
  fill_rest();
  return success;
}
inline Result init_v10(abi::Logger logger, abi::ProfilerCallback) {
  return init_old(logger);
}
inline Result init(void** context, std::uint64_t, abi::CommConfig* config, abi::Logger logger, abi::ProfilerCallback) {
  *context = &g_inits;
  g_traffic_class = config->traffic_class;
  return init_old(logger);
}

inline Result listen_old(int device, void* handle, void** comm) {
  return listen(nullptr, device, handle, comm);
}
inline Result connect_v6(int device, void* handle, void** comm) {
  return connect(nullptr, device, handle, comm, nullptr);
}
inline Result connect_v7(int device, void* handle, void** comm, DeviceHandle**) {
  return connect(nullptr, device, handle, comm, nullptr);
}
inline Result connect_v10(int device, abi::CommConfig* config, void* handle, void** comm, DeviceHandle**) {
  g_traffic_class = config->traffic_class;
  return connect(nullptr, device, handle, comm, nullptr);
}
inline Result accept_v6(void* listen_comm, void** comm) {
  return accept(listen_comm, comm, nullptr);
}

template <class Size>
Result send_old(void* comm, void* data, Size bytes, int, void*, void** request) {
  return post(comm, true, data, static_cast<std::size_t>(bytes), request);
}
inline Result send(void* comm, void* data, std::size_t bytes, int, void*, void*, void** request) {
  return post(comm, true, data, bytes, request);
}
template <class Size>
Result receive_old(void* comm, int, void** data, Size* bytes, int*, void**, void** request) {
  return post(comm, false, data[0], static_cast<std::size_t>(bytes[0]), request);
}
inline Result receive(void* comm, int, void** data, std::size_t* bytes, int*, void**, void**, void** request) {
  return post(comm, false, data[0], bytes[0], request);
}

inline Result finalize(void*) {
  return success;
}

template <int kVersion>
constexpr abi::NetTable<kVersion> make_table() {
  abi::NetTable<kVersion> table{};
  table.name = "Parcel";
  table.devices = devices;
  table.get_properties = get_properties<typename abi::NetVersion<kVersion>::Properties>;
  table.register_dma_buf = register_dma_buf;
  table.deregister_memory = deregister_memory;
  table.test = test;
  table.close_send = table.close_receive = table.close_listen = close_comm;
  if constexpr (kVersion >= 8) {
    table.register_memory = register_memory<std::size_t>;
  } else {
    table.register_memory = register_memory<int>;
  }
  if constexpr (kVersion >= 10) {
    table.send = send;
    table.receive = receive;
  } else if constexpr (kVersion == 9) {
    table.send = send_old<std::size_t>;
    table.receive = receive_old<std::size_t>;
  } else {
    table.send = send_old<int>;
    table.receive = receive_old<int>;
  }
  if constexpr (kVersion >= 7) {
    table.accept = accept;
  } else {
    table.accept = accept_v6;
  }
  if constexpr (kVersion >= 9) table.make_virtual_device = make_virtual_device;
  if constexpr (kVersion >= 11) {
    table.init = init;
    table.listen = listen;
    table.connect = connect;
    table.finalize = finalize;
  } else {
    table.listen = listen_old;
    if constexpr (kVersion == 10) {
      table.init = init_v10;
      table.connect = connect_v10;
    } else {
      table.init = init_old;
      if constexpr (kVersion >= 7) {
        table.connect = connect_v7;
      } else {
        table.connect = connect_v6;
      }
    }
  }
  return table;
}

}  // namespace
}  // namespace tributary::nccl

namespace nccl = tributary::nccl;
#define PARCEL_EXPORT extern "C" __attribute__((visibility("default")))

PARCEL_EXPORT int parcel_inits() {
  return nccl::g_inits;
}
PARCEL_EXPORT int parcel_traffic_class() {
  return nccl::g_traffic_class;
}

#define PARCEL_TABLE(number)                                                                   \
  __attribute__((visibility("default"))) nccl::abi::NetTable<number> ncclNetPlugin_v##number = \
      nccl::make_table<number>()
extern "C" {
#if PARCEL_NEWEST >= 12
PARCEL_TABLE(12);
#endif
#if PARCEL_NEWEST >= 11 && PARCEL_OLDEST <= 11
PARCEL_TABLE(11);
#endif
#if PARCEL_NEWEST >= 10 && PARCEL_OLDEST <= 10
PARCEL_TABLE(10);
#endif
#if PARCEL_NEWEST >= 9 && PARCEL_OLDEST <= 9
PARCEL_TABLE(9);
#endif
#if PARCEL_NEWEST >= 8 && PARCEL_OLDEST <= 8
PARCEL_TABLE(8);
#endif
#if PARCEL_NEWEST >= 7 && PARCEL_OLDEST <= 7
PARCEL_TABLE(7);
#endif
#if PARCEL_OLDEST <= 6
PARCEL_TABLE(6);
#endif
}  // extern "C"

namespace tributary::nccl {
namespace {

void fill_rest() {
#if PARCEL_NEWEST >= 12
  ncclNetPlugin_v12.flush = flush;
#endif
#if PARCEL_NEWEST >= 11 && PARCEL_OLDEST <= 11
  ncclNetPlugin_v11.flush = flush;
#endif
#if PARCEL_NEWEST >= 10 && PARCEL_OLDEST <= 10
  ncclNetPlugin_v10.flush = flush;
#endif
#if PARCEL_NEWEST >= 9 && PARCEL_OLDEST <= 9
  ncclNetPlugin_v9.flush = flush;
#endif
#if PARCEL_NEWEST >= 8 && PARCEL_OLDEST <= 8
  ncclNetPlugin_v8.flush = flush;
#endif
#if PARCEL_NEWEST >= 7 && PARCEL_OLDEST <= 7
  ncclNetPlugin_v7.flush = flush;
#endif
#if PARCEL_OLDEST <= 6
  ncclNetPlugin_v6.flush = flush;
#endif
}

}  // namespace
}  // namespace tributary::nccl
