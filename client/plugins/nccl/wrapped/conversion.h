#pragma once
// One version of the net table, made of a wrapped plugin's table of the same or of an older version.
//
// A member of the same type in both versions is handed on as it is, so with equal versions NCCL calls the wrapped
// plugin directly. The other members get a function that converts the arguments, as NCCL's own code does for plugins
// that are older than NCCL.
#include <algorithm>
#include <array>
#include <climits>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>

#include "client/plugins/nccl/abi/net_versions.h"
#include "client/plugins/nccl/guard.h"
#include "client/plugins/nccl/wrapped_devices.h"

namespace tributary::nccl {

inline constexpr std::size_t kOldBytesMax = std::size_t{1} << 30;  // NCCL's limit where a size is an int
inline constexpr int kOldReceivesMax = 64;                         // more than NCCL groups in one receive

/// Fills the members of a newer layout of properties from an older one, or copies equal layouts.
template <class To, class From>
void convert_properties(int device, const From& from, To& to) {
  to = {};
  to.name = from.name;
  to.pci_path = from.pci_path;
  to.guid = from.guid;
  to.pointer_support = from.pointer_support;
  to.speed_mbps = from.speed_mbps;
  to.port = from.port;
  to.latency_us = from.latency_us;
  to.comms_max = from.comms_max;
  to.receives_max = from.receives_max;
  if constexpr (requires { from.registration_is_global; }) to.registration_is_global = from.registration_is_global;
  if constexpr (requires { from.force_flush; }) to.force_flush = from.force_flush;
  if constexpr (requires { from.net_device_type; }) {
    to.net_device_type = from.net_device_type;
    to.net_device_version = from.net_device_version;
  }
  if constexpr (requires { from.virtual_device; }) {
    to.virtual_device.devices = from.virtual_device.devices;
    std::copy(std::begin(from.virtual_device.device), std::end(from.virtual_device.device), to.virtual_device.device);
    to.p2p_bytes_max = from.p2p_bytes_max;
    to.collective_bytes_max = from.collective_bytes_max;
  } else if constexpr (requires { to.virtual_device; }) {
    to.virtual_device.devices = 1;
    to.virtual_device.device[0] = device;
    to.p2p_bytes_max = to.collective_bytes_max = kOldBytesMax;
  }
  if constexpr (requires { from.multi_request_max; }) {
    to.multi_request_max = from.multi_request_max;
  } else if constexpr (requires { to.multi_request_max; }) {
    to.multi_request_max = 1;
  }
  if constexpr (requires { from.rail; }) {
    to.rail = from.rail;
    to.plane = from.plane;
  } else if constexpr (requires { to.rail; }) {
    to.rail = to.plane = -1;
  }
}

template <int kTo, int kFrom>
class Conversion {
  static_assert(kTo >= kFrom, "NCCL asks for a version that the plugin has, or for a newer one");

 public:
  using To = abi::NetTable<kTo>;
  using From = abi::NetTable<kFrom>;

  /// Fills `to`. Both tables and the text must stay. Some plugins fill their tables only in init(), so the first init()
  /// that succeeds fills `to` again.
  static void wrap(To& to, const From& from, const char* plugin) {
    to_ = &to;
    from_ = &from;
    plugin_ = plugin;
    fill();
  }

 private:
  using Result = abi::Result;

  /// True if both versions have the same type of a member.
  template <class Member, class Original>
  static constexpr bool kAlike = std::is_same_v<Member, Original>;
  /// Returns the converting function if the wrapped plugin has the member.
  template <class Function>
  static Function* if_there(bool there, Function* converted) {
    return there ? converted : nullptr;
  }

  static void fill() {
    fill_begin();
    fill_connections();
    fill_memory();
    fill_send();
    fill_receive();
    fill_options();
  }

  static void fill_begin() {
    to_->name = "tributary";  // CollNet's table has this name, and NCCL_NET names it
    if constexpr (kTo >= 11) {
      to_->init = init;
    } else if constexpr (kTo == 10) {
      to_->init = init_v10;
    } else {
      to_->init = init_old;
    }
    to_->devices = from_->devices;
    if constexpr (kAlike<decltype(To::get_properties), decltype(From::get_properties)>) {
      to_->get_properties = from_->get_properties;
    } else {
      to_->get_properties = if_there(from_->get_properties != nullptr, get_properties);
    }
  }

  static void fill_connections() {
    if constexpr (kAlike<decltype(To::listen), decltype(From::listen)>) {
      to_->listen = from_->listen;
    } else {
      to_->listen = if_there(from_->listen != nullptr, listen);
    }
    if constexpr (kAlike<decltype(To::connect), decltype(From::connect)>) {
      to_->connect = from_->connect;
    } else if constexpr (kTo >= 11) {
      to_->connect = if_there(from_->connect != nullptr, connect);
    } else if constexpr (kTo == 10) {
      to_->connect = if_there(from_->connect != nullptr, connect_v10);
    } else {
      to_->connect = if_there(from_->connect != nullptr, connect_v7);
    }
    if constexpr (kAlike<decltype(To::accept), decltype(From::accept)>) {
      to_->accept = from_->accept;
    } else {
      to_->accept = if_there(from_->accept != nullptr, accept);
    }
    to_->close_send = from_->close_send;
    to_->close_receive = from_->close_receive;
    to_->close_listen = from_->close_listen;
  }

  static void fill_memory() {
    if constexpr (kAlike<decltype(To::register_memory), decltype(From::register_memory)>) {
      to_->register_memory = from_->register_memory;
    } else {
      to_->register_memory = if_there(from_->register_memory != nullptr, register_memory);
    }
    to_->register_dma_buf = from_->register_dma_buf;
    to_->deregister_memory = from_->deregister_memory;
  }

  static void fill_send() {
    if constexpr (kAlike<decltype(To::send), decltype(From::send)>) {
      to_->send = from_->send;
    } else if constexpr (kTo >= 10) {
      to_->send = if_there(from_->send != nullptr, send);
    } else {
      to_->send = if_there(from_->send != nullptr, send_v9);
    }
  }

  static void fill_receive() {
    if constexpr (kAlike<decltype(To::receive), decltype(From::receive)>) {
      to_->receive = from_->receive;
    } else if constexpr (kTo >= 10) {
      to_->receive = if_there(from_->receive != nullptr, receive);
    } else {
      to_->receive = if_there(from_->receive != nullptr, receive_v9);
    }
    to_->flush = from_->flush;
    to_->test = from_->test;
  }

  /// Members that only newer versions have.
  static void fill_options() {
    if constexpr (kFrom >= 7) {
      to_->device_memory = from_->device_memory;
      to_->receive_consumed = from_->receive_consumed;
    } else if constexpr (kTo >= 7) {
      to_->device_memory = nullptr;
      to_->receive_consumed = nullptr;
    }
    if constexpr (kFrom >= 9) {
      if constexpr (kAlike<decltype(To::make_virtual_device), decltype(From::make_virtual_device)>) {
        to_->make_virtual_device = from_->make_virtual_device;
      } else {
        to_->make_virtual_device = if_there(from_->make_virtual_device != nullptr, make_virtual_device);
      }
    } else if constexpr (kTo >= 9) {
      to_->make_virtual_device = nullptr;
    }
    if constexpr (kFrom >= 11) {
      to_->finalize = from_->finalize;
      to_->set_attributes = from_->set_attributes;
    } else if constexpr (kTo >= 11) {
      to_->finalize = finalize;
      to_->set_attributes = nullptr;
    }
  }

  static Result begin(void** context, std::uint64_t comm_id, abi::CommConfig* config, abi::Logger logger,
                      abi::ProfilerCallback profiler) {
    return guarded("net init", [&] {
      set_logger(logger);
      const Result result = begin_wrapped(context, comm_id, config, logger, profiler);
      if (result != Result::success) {
        warn(std::string(plugin_) + ", which TRIBUTARY_NCCL_NET names, could not be initialised: result " +
             std::to_string(static_cast<int>(result)));
        return result;
      }
      std::call_once(filled_, fill);  // NCCL may read the table in other threads from now on
      note_wrapped({.devices = from_->devices, .properties = newest_properties});
      info("net v" + std::to_string(kTo) + ": point-to-point by " + plugin_ + " (" + from_->name + ", v" +
           std::to_string(kFrom) + ")");
      return result;
    });
  }

  static Result begin_wrapped(void** context, std::uint64_t comm_id, abi::CommConfig* config, abi::Logger logger,
                              abi::ProfilerCallback profiler) {
    if constexpr (kFrom >= 11) {
      return from_->init(context, comm_id, config, logger, profiler);
    } else if constexpr (kTo >= 11) {
      // NCCL initialises a plugin of these versions once, and passes the traffic class to each connect().
      const std::lock_guard lock(mutex_);
      if (users_ == 0) {
        if (const Result result = begin_once(logger, profiler); result != Result::success) return result;
      }
      auto own = std::make_unique<abi::CommConfig>(config == nullptr ? abi::CommConfig{-1} : *config);
      *context = own.release();  // finalize() deletes it
      ++users_;
      return Result::success;
    } else {
      return begin_once(logger, profiler);
    }
  }

  static Result begin_once(abi::Logger logger, [[maybe_unused]] abi::ProfilerCallback profiler) {
    if constexpr (kFrom == 10) {
      return from_->init(logger, profiler);
    } else {
      return from_->init(logger);
    }
  }

  static Result init_old(abi::Logger logger) { return begin(nullptr, 0, nullptr, logger, nullptr); }
  static Result init_v10(abi::Logger logger, abi::ProfilerCallback profiler) {
    return begin(nullptr, 0, nullptr, logger, profiler);
  }
  static Result init(void** context, std::uint64_t comm_id, abi::CommConfig* config, abi::Logger logger,
                     abi::ProfilerCallback profiler) {
    return begin(context, comm_id, config, logger, profiler);
  }
  static Result finalize(void* context) {
    const std::unique_ptr<abi::CommConfig> gone(static_cast<abi::CommConfig*>(context));
    const std::lock_guard lock(mutex_);
    if (users_ > 0) --users_;
    return Result::success;
  }

  template <class Properties>
  static Result properties_as(int device, Properties* properties) {
    typename abi::NetVersion<kFrom>::Properties from{};
    const Result result = from_->get_properties(device, &from);
    if (result == Result::success) convert_properties(device, from, *properties);
    return result;
  }
  static Result get_properties(int device, abi::NetVersion<kTo>::Properties* properties) {
    return properties_as(device, properties);
  }
  static Result newest_properties(int device, abi::PropertiesV12* properties) {
    return properties_as(device, properties);
  }

  static Result listen(void*, int device, void* handle, void** listen_comm) {
    return from_->listen(device, handle, listen_comm);
  }
  static Result connect_old([[maybe_unused]] abi::CommConfig* config, int device, void* handle, void** send_comm,
                            [[maybe_unused]] abi::DeviceHandle** offload) {
    if constexpr (kFrom == 10) {
      return from_->connect(device, config, handle, send_comm, offload);
    } else if constexpr (kFrom >= 7) {
      return from_->connect(device, handle, send_comm, offload);
    } else {
      return from_->connect(device, handle, send_comm);
    }
  }
  static Result connect(void* context, int device, void* handle, void** send_comm, abi::DeviceHandle** offload) {
    return connect_old(static_cast<abi::CommConfig*>(context), device, handle, send_comm, offload);
  }
  static Result connect_v10(int device, abi::CommConfig* config, void* handle, void** send_comm,
                            abi::DeviceHandle** offload) {
    return connect_old(config, device, handle, send_comm, offload);
  }
  static Result connect_v7(int device, void* handle, void** send_comm, abi::DeviceHandle** offload) {
    return connect_old(nullptr, device, handle, send_comm, offload);
  }
  static Result accept(void* listen_comm, void** receive_comm, abi::DeviceHandle**) {
    return from_->accept(listen_comm, receive_comm);
  }

  static Result register_memory(void* comm, void* data, std::size_t bytes, int pointer_kind, void** memory) {
    if (bytes > INT_MAX) return Result::internal_error;
    return from_->register_memory(comm, data, static_cast<int>(bytes), pointer_kind, memory);
  }

  static Result send_v9(void* comm, void* data, std::size_t bytes, int tag, void* memory, void** request) {
    if constexpr (kFrom == 9) {
      return from_->send(comm, data, bytes, tag, memory, request);
    } else {
      if (bytes > kOldBytesMax) return Result::internal_error;
      return from_->send(comm, data, static_cast<int>(bytes), tag, memory, request);
    }
  }
  static Result send(void* comm, void* data, std::size_t bytes, int tag, void* memory, void*, void** request) {
    return send_v9(comm, data, bytes, tag, memory, request);
  }

  static Result receive_v9(void* comm, int n, void** data, std::size_t* bytes, int* tags, void** memory,
                           void** request) {
    if constexpr (kFrom == 9) {
      return from_->receive(comm, n, data, bytes, tags, memory, request);
    } else {
      if (n > kOldReceivesMax) return Result::internal_error;
      std::array<int, kOldReceivesMax> sizes{};
      for (int i = 0; i < n; ++i) {
        if (bytes[i] > kOldBytesMax) return Result::internal_error;
        sizes[static_cast<std::size_t>(i)] = static_cast<int>(bytes[i]);
      }
      *request = nullptr;  // newer versions of NCCL pass 1 for an optional completion, which these plugins do not know
      return from_->receive(comm, n, data, sizes.data(), tags, memory, request);
    }
  }
  static Result receive(void* comm, int n, void** data, std::size_t* bytes, int* tags, void** memory, void**,
                        void** request) {
    return receive_v9(comm, n, data, bytes, tags, memory, request);
  }

  static Result make_virtual_device(int* device, abi::VirtualDevice<8>* parts) {
    abi::VirtualDevice<4> few{};
    if (parts->devices > 4) return Result::invalid_usage;
    few.devices = parts->devices;
    std::copy(parts->device, parts->device + 4, few.device);
    return from_->make_virtual_device(device, &few);
  }

  static inline To* to_ = nullptr;
  static inline const From* from_ = nullptr;
  static inline const char* plugin_ = nullptr;
  static inline std::once_flag filled_;  // set after the first init() that succeeded
  static inline std::mutex mutex_;
  static inline int users_ = 0;  // number of contexts; guarded by mutex_
};

}  // namespace tributary::nccl
