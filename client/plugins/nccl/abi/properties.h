#pragma once
// The structs that getProperties fills. Each version of the tables has its own layout.
#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl::abi {

template <std::size_t kDevices>
struct VirtualDevice {
  int devices;
  int device[kDevices];
};

struct PropertiesV6 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int speed_mbps;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
};
static_assert(sizeof(PropertiesV6) == 48 && offsetof(PropertiesV6, speed_mbps) == 28 &&
              offsetof(PropertiesV6, receives_max) == 44);

struct PropertiesV7 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int speed_mbps;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
  int net_device_type;
  int net_device_version;
};
static_assert(sizeof(PropertiesV7) == 56);

struct PropertiesV8 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int speed_mbps;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
  int net_device_type;
  int net_device_version;
};
static_assert(sizeof(PropertiesV8) == 64 && offsetof(PropertiesV8, speed_mbps) == 32 &&
              offsetof(PropertiesV8, net_device_type) == 52);

struct PropertiesV9 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
  int net_device_type;
  int net_device_version;
  VirtualDevice<4> virtual_device;
  std::size_t p2p_bytes_max;
  std::size_t collective_bytes_max;
};
static_assert(sizeof(PropertiesV9) == 104 && offsetof(PropertiesV9, speed_mbps) == 36 &&
              offsetof(PropertiesV9, virtual_device) == 64 && offsetof(PropertiesV9, p2p_bytes_max) == 88 &&
              offsetof(PropertiesV9, collective_bytes_max) == 96);
using PropertiesV10 = PropertiesV9;

struct PropertiesV11 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
  int net_device_type;
  int net_device_version;
  VirtualDevice<4> virtual_device;
  std::size_t p2p_bytes_max;
  std::size_t collective_bytes_max;
  int multi_request_max;
};
static_assert(sizeof(PropertiesV11) == 112 && offsetof(PropertiesV11, guid) == 16 &&
              offsetof(PropertiesV11, force_flush) == 32 && offsetof(PropertiesV11, latency_us) == 44 &&
              offsetof(PropertiesV11, receives_max) == 52 && offsetof(PropertiesV11, virtual_device) == 64 &&
              offsetof(PropertiesV11, multi_request_max) == 104);

struct PropertiesV12 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
  int net_device_type;
  int net_device_version;
  VirtualDevice<8> virtual_device;
  std::size_t p2p_bytes_max;
  std::size_t collective_bytes_max;
  int multi_request_max;
  std::int16_t rail;   // -1: not known
  std::int16_t plane;  // -1: not known
};
static_assert(sizeof(PropertiesV12) == 128 && offsetof(PropertiesV12, p2p_bytes_max) == 104 &&
              offsetof(PropertiesV12, collective_bytes_max) == 112 &&
              offsetof(PropertiesV12, multi_request_max) == 120 && offsetof(PropertiesV12, rail) == 124 &&
              offsetof(PropertiesV12, plane) == 126);

struct CommAttributes {
  std::int32_t concurrent_peers_max, concurrent_peers_min, flows_per_peer_max, flows_per_peer_min;
};
struct NetAttributes {
  CommAttributes send, receive;
  std::uint32_t operation, algorithm, protocol;
};
static_assert(sizeof(NetAttributes) == 44);

}  // namespace tributary::nccl::abi
