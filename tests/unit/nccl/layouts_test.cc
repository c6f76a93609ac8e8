// The binary layouts of every version of the tables, member by member: the order and the offsets come from the headers
// of the NCCL version that the comment names. The compiler checks them.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "client/plugins/nccl/abi/collnet.h"
#include "client/plugins/nccl/abi/net_versions.h"
#include "client/plugins/nccl/abi/tuner.h"

namespace tributary::nccl::abi {
namespace {

struct Member {
  std::size_t here, in_nccl;
};

template <std::size_t kMembers>
constexpr bool are_in_place(const std::array<Member, kMembers>& members) {
  for (const Member& member : members) {
    if (member.here != member.in_nccl) return false;
  }
  return true;
}

/// A table has only pointers. Its members are listed here in the order of NCCL.
template <std::size_t kMembers>
constexpr bool is_row_of_pointers(const std::array<std::size_t, kMembers>& offsets) {
  for (std::size_t i = 0; i < kMembers; ++i) {
    if (offsets[i] != i * sizeof(void*)) return false;
  }
  return true;
}

// Version 6, from NCCL 2.18.1.
namespace v6 {
using P = PropertiesV6;
using N = NetV6;
using C = CollNetV6;
constexpr std::array kProperties{Member{offsetof(P, name), 0},         Member{offsetof(P, pci_path), 8},
                                 Member{offsetof(P, guid), 16},        Member{offsetof(P, pointer_support), 24},
                                 Member{offsetof(P, speed_mbps), 28},  Member{offsetof(P, port), 32},
                                 Member{offsetof(P, latency_us), 36},  Member{offsetof(P, comms_max), 40},
                                 Member{offsetof(P, receives_max), 44}};
static_assert(are_in_place(kProperties) && sizeof(P) == 48);
constexpr std::array kNet{offsetof(N, name),
                          offsetof(N, init),
                          offsetof(N, devices),
                          offsetof(N, get_properties),
                          offsetof(N, listen),
                          offsetof(N, connect),
                          offsetof(N, accept),
                          offsetof(N, register_memory),
                          offsetof(N, register_dma_buf),
                          offsetof(N, deregister_memory),
                          offsetof(N, send),
                          offsetof(N, receive),
                          offsetof(N, flush),
                          offsetof(N, test),
                          offsetof(N, close_send),
                          offsetof(N, close_receive),
                          offsetof(N, close_listen)};
static_assert(is_row_of_pointers(kNet) && sizeof(N) == sizeof(kNet));
constexpr std::array kCollNet{offsetof(C, name),
                              offsetof(C, init),
                              offsetof(C, devices),
                              offsetof(C, get_properties),
                              offsetof(C, listen),
                              offsetof(C, connect),
                              offsetof(C, reduce_support),
                              offsetof(C, register_memory),
                              offsetof(C, register_dma_buf),
                              offsetof(C, deregister_memory),
                              offsetof(C, all_reduce),
                              offsetof(C, flush),
                              offsetof(C, test),
                              offsetof(C, close_collective),
                              offsetof(C, close_listen)};
static_assert(is_row_of_pointers(kCollNet) && sizeof(C) == sizeof(kCollNet));
}  // namespace v6

// Version 7, from NCCL 2.19.3.
namespace v7 {
using P = PropertiesV7;
using N = NetV7;
using C = CollNetV7;
constexpr std::array kProperties{Member{offsetof(P, name), 0},
                                 Member{offsetof(P, pci_path), 8},
                                 Member{offsetof(P, guid), 16},
                                 Member{offsetof(P, pointer_support), 24},
                                 Member{offsetof(P, speed_mbps), 28},
                                 Member{offsetof(P, port), 32},
                                 Member{offsetof(P, latency_us), 36},
                                 Member{offsetof(P, comms_max), 40},
                                 Member{offsetof(P, receives_max), 44},
                                 Member{offsetof(P, net_device_type), 48},
                                 Member{offsetof(P, net_device_version), 52}};
static_assert(are_in_place(kProperties) && sizeof(P) == 56);
constexpr std::array kNet{offsetof(N, name),
                          offsetof(N, init),
                          offsetof(N, devices),
                          offsetof(N, get_properties),
                          offsetof(N, listen),
                          offsetof(N, connect),
                          offsetof(N, accept),
                          offsetof(N, register_memory),
                          offsetof(N, register_dma_buf),
                          offsetof(N, deregister_memory),
                          offsetof(N, send),
                          offsetof(N, receive),
                          offsetof(N, flush),
                          offsetof(N, test),
                          offsetof(N, close_send),
                          offsetof(N, close_receive),
                          offsetof(N, close_listen),
                          offsetof(N, device_memory),
                          offsetof(N, receive_consumed)};
static_assert(is_row_of_pointers(kNet) && sizeof(N) == sizeof(kNet));
constexpr std::array kCollNet{offsetof(C, name),
                              offsetof(C, init),
                              offsetof(C, devices),
                              offsetof(C, get_properties),
                              offsetof(C, listen),
                              offsetof(C, connect),
                              offsetof(C, reduce_support),
                              offsetof(C, register_memory),
                              offsetof(C, register_dma_buf),
                              offsetof(C, deregister_memory),
                              offsetof(C, all_reduce),
                              offsetof(C, flush),
                              offsetof(C, test),
                              offsetof(C, close_collective),
                              offsetof(C, close_listen)};
static_assert(is_row_of_pointers(kCollNet) && sizeof(C) == sizeof(kCollNet));
}  // namespace v7

// Version 8, from NCCL 2.20.5.
namespace v8 {
using P = PropertiesV8;
using N = NetV8;
using C = CollNetV8;
constexpr std::array kProperties{Member{offsetof(P, name), 0},
                                 Member{offsetof(P, pci_path), 8},
                                 Member{offsetof(P, guid), 16},
                                 Member{offsetof(P, pointer_support), 24},
                                 Member{offsetof(P, registration_is_global), 28},
                                 Member{offsetof(P, speed_mbps), 32},
                                 Member{offsetof(P, port), 36},
                                 Member{offsetof(P, latency_us), 40},
                                 Member{offsetof(P, comms_max), 44},
                                 Member{offsetof(P, receives_max), 48},
                                 Member{offsetof(P, net_device_type), 52},
                                 Member{offsetof(P, net_device_version), 56}};
static_assert(are_in_place(kProperties) && sizeof(P) == 64);
constexpr std::array kNet{offsetof(N, name),
                          offsetof(N, init),
                          offsetof(N, devices),
                          offsetof(N, get_properties),
                          offsetof(N, listen),
                          offsetof(N, connect),
                          offsetof(N, accept),
                          offsetof(N, register_memory),
                          offsetof(N, register_dma_buf),
                          offsetof(N, deregister_memory),
                          offsetof(N, send),
                          offsetof(N, receive),
                          offsetof(N, flush),
                          offsetof(N, test),
                          offsetof(N, close_send),
                          offsetof(N, close_receive),
                          offsetof(N, close_listen),
                          offsetof(N, device_memory),
                          offsetof(N, receive_consumed)};
static_assert(is_row_of_pointers(kNet) && sizeof(N) == sizeof(kNet));
constexpr std::array kCollNet{offsetof(C, name),
                              offsetof(C, init),
                              offsetof(C, devices),
                              offsetof(C, get_properties),
                              offsetof(C, listen),
                              offsetof(C, connect),
                              offsetof(C, reduce_support),
                              offsetof(C, register_memory),
                              offsetof(C, register_dma_buf),
                              offsetof(C, deregister_memory),
                              offsetof(C, all_reduce),
                              offsetof(C, all_gather),
                              offsetof(C, reduce_scatter),
                              offsetof(C, flush),
                              offsetof(C, test),
                              offsetof(C, close_collective),
                              offsetof(C, close_listen)};
static_assert(is_row_of_pointers(kCollNet) && sizeof(C) == sizeof(kCollNet));
}  // namespace v8

// Version 9, from NCCL 2.24.3.
namespace v9 {
using P = PropertiesV9;
using N = NetV9;
using C = CollNetV9;
constexpr std::array kProperties{Member{offsetof(P, name), 0},
                                 Member{offsetof(P, pci_path), 8},
                                 Member{offsetof(P, guid), 16},
                                 Member{offsetof(P, pointer_support), 24},
                                 Member{offsetof(P, registration_is_global), 28},
                                 Member{offsetof(P, force_flush), 32},
                                 Member{offsetof(P, speed_mbps), 36},
                                 Member{offsetof(P, port), 40},
                                 Member{offsetof(P, latency_us), 44},
                                 Member{offsetof(P, comms_max), 48},
                                 Member{offsetof(P, receives_max), 52},
                                 Member{offsetof(P, net_device_type), 56},
                                 Member{offsetof(P, net_device_version), 60},
                                 Member{offsetof(P, virtual_device), 64},
                                 Member{offsetof(P, p2p_bytes_max), 88},
                                 Member{offsetof(P, collective_bytes_max), 96}};
static_assert(are_in_place(kProperties) && sizeof(P) == 104);
constexpr std::array kNet{offsetof(N, name),
                          offsetof(N, init),
                          offsetof(N, devices),
                          offsetof(N, get_properties),
                          offsetof(N, listen),
                          offsetof(N, connect),
                          offsetof(N, accept),
                          offsetof(N, register_memory),
                          offsetof(N, register_dma_buf),
                          offsetof(N, deregister_memory),
                          offsetof(N, send),
                          offsetof(N, receive),
                          offsetof(N, flush),
                          offsetof(N, test),
                          offsetof(N, close_send),
                          offsetof(N, close_receive),
                          offsetof(N, close_listen),
                          offsetof(N, device_memory),
                          offsetof(N, receive_consumed),
                          offsetof(N, make_virtual_device)};
static_assert(is_row_of_pointers(kNet) && sizeof(N) == sizeof(kNet));
constexpr std::array kCollNet{offsetof(C, name),
                              offsetof(C, init),
                              offsetof(C, devices),
                              offsetof(C, get_properties),
                              offsetof(C, listen),
                              offsetof(C, connect),
                              offsetof(C, reduce_support),
                              offsetof(C, register_memory),
                              offsetof(C, register_dma_buf),
                              offsetof(C, deregister_memory),
                              offsetof(C, all_reduce),
                              offsetof(C, all_gather),
                              offsetof(C, reduce_scatter),
                              offsetof(C, flush),
                              offsetof(C, test),
                              offsetof(C, close_collective),
                              offsetof(C, close_listen),
                              offsetof(C, make_virtual_device)};
static_assert(is_row_of_pointers(kCollNet) && sizeof(C) == sizeof(kCollNet));
}  // namespace v9

// Version 10, from NCCL 2.26.5.
namespace v10 {
using P = PropertiesV10;
using N = NetV10;
using C = CollNetV10;
constexpr std::array kProperties{Member{offsetof(P, name), 0},
                                 Member{offsetof(P, pci_path), 8},
                                 Member{offsetof(P, guid), 16},
                                 Member{offsetof(P, pointer_support), 24},
                                 Member{offsetof(P, registration_is_global), 28},
                                 Member{offsetof(P, force_flush), 32},
                                 Member{offsetof(P, speed_mbps), 36},
                                 Member{offsetof(P, port), 40},
                                 Member{offsetof(P, latency_us), 44},
                                 Member{offsetof(P, comms_max), 48},
                                 Member{offsetof(P, receives_max), 52},
                                 Member{offsetof(P, net_device_type), 56},
                                 Member{offsetof(P, net_device_version), 60},
                                 Member{offsetof(P, virtual_device), 64},
                                 Member{offsetof(P, p2p_bytes_max), 88},
                                 Member{offsetof(P, collective_bytes_max), 96}};
static_assert(are_in_place(kProperties) && sizeof(P) == 104);
constexpr std::array kNet{offsetof(N, name),
                          offsetof(N, init),
                          offsetof(N, devices),
                          offsetof(N, get_properties),
                          offsetof(N, listen),
                          offsetof(N, connect),
                          offsetof(N, accept),
                          offsetof(N, register_memory),
                          offsetof(N, register_dma_buf),
                          offsetof(N, deregister_memory),
                          offsetof(N, send),
                          offsetof(N, receive),
                          offsetof(N, flush),
                          offsetof(N, test),
                          offsetof(N, close_send),
                          offsetof(N, close_receive),
                          offsetof(N, close_listen),
                          offsetof(N, device_memory),
                          offsetof(N, receive_consumed),
                          offsetof(N, make_virtual_device)};
static_assert(is_row_of_pointers(kNet) && sizeof(N) == sizeof(kNet));
constexpr std::array kCollNet{offsetof(C, name),
                              offsetof(C, init),
                              offsetof(C, devices),
                              offsetof(C, get_properties),
                              offsetof(C, listen),
                              offsetof(C, connect),
                              offsetof(C, reduce_support),
                              offsetof(C, register_memory),
                              offsetof(C, register_dma_buf),
                              offsetof(C, deregister_memory),
                              offsetof(C, all_reduce),
                              offsetof(C, all_gather),
                              offsetof(C, reduce_scatter),
                              offsetof(C, flush),
                              offsetof(C, test),
                              offsetof(C, close_collective),
                              offsetof(C, close_listen),
                              offsetof(C, make_virtual_device)};
static_assert(is_row_of_pointers(kCollNet) && sizeof(C) == sizeof(kCollNet));
}  // namespace v10

// Version 11, from NCCL 2.28.9.
namespace v11 {
using P = PropertiesV11;
using N = NetV11;
using C = CollNetV11;
constexpr std::array kProperties{Member{offsetof(P, name), 0},
                                 Member{offsetof(P, pci_path), 8},
                                 Member{offsetof(P, guid), 16},
                                 Member{offsetof(P, pointer_support), 24},
                                 Member{offsetof(P, registration_is_global), 28},
                                 Member{offsetof(P, force_flush), 32},
                                 Member{offsetof(P, speed_mbps), 36},
                                 Member{offsetof(P, port), 40},
                                 Member{offsetof(P, latency_us), 44},
                                 Member{offsetof(P, comms_max), 48},
                                 Member{offsetof(P, receives_max), 52},
                                 Member{offsetof(P, net_device_type), 56},
                                 Member{offsetof(P, net_device_version), 60},
                                 Member{offsetof(P, virtual_device), 64},
                                 Member{offsetof(P, p2p_bytes_max), 88},
                                 Member{offsetof(P, collective_bytes_max), 96},
                                 Member{offsetof(P, multi_request_max), 104}};
static_assert(are_in_place(kProperties) && sizeof(P) == 112);
constexpr std::array kNet{offsetof(N, name),
                          offsetof(N, init),
                          offsetof(N, devices),
                          offsetof(N, get_properties),
                          offsetof(N, listen),
                          offsetof(N, connect),
                          offsetof(N, accept),
                          offsetof(N, register_memory),
                          offsetof(N, register_dma_buf),
                          offsetof(N, deregister_memory),
                          offsetof(N, send),
                          offsetof(N, receive),
                          offsetof(N, flush),
                          offsetof(N, test),
                          offsetof(N, close_send),
                          offsetof(N, close_receive),
                          offsetof(N, close_listen),
                          offsetof(N, device_memory),
                          offsetof(N, receive_consumed),
                          offsetof(N, make_virtual_device),
                          offsetof(N, finalize),
                          offsetof(N, set_attributes)};
static_assert(is_row_of_pointers(kNet) && sizeof(N) == sizeof(kNet));
constexpr std::array kCollNet{offsetof(C, name),
                              offsetof(C, init),
                              offsetof(C, devices),
                              offsetof(C, get_properties),
                              offsetof(C, listen),
                              offsetof(C, connect),
                              offsetof(C, reduce_support),
                              offsetof(C, register_memory),
                              offsetof(C, register_dma_buf),
                              offsetof(C, deregister_memory),
                              offsetof(C, all_reduce),
                              offsetof(C, all_gather),
                              offsetof(C, reduce_scatter),
                              offsetof(C, flush),
                              offsetof(C, test),
                              offsetof(C, close_collective),
                              offsetof(C, close_listen),
                              offsetof(C, make_virtual_device),
                              offsetof(C, finalize)};
static_assert(is_row_of_pointers(kCollNet) && sizeof(C) == sizeof(kCollNet));
}  // namespace v11

// Version 12, from NCCL 2.30.7.
namespace v12 {
using P = PropertiesV12;
using N = NetV12;
using C = CollNetV12;
constexpr std::array kProperties{Member{offsetof(P, name), 0},
                                 Member{offsetof(P, pci_path), 8},
                                 Member{offsetof(P, guid), 16},
                                 Member{offsetof(P, pointer_support), 24},
                                 Member{offsetof(P, registration_is_global), 28},
                                 Member{offsetof(P, force_flush), 32},
                                 Member{offsetof(P, speed_mbps), 36},
                                 Member{offsetof(P, port), 40},
                                 Member{offsetof(P, latency_us), 44},
                                 Member{offsetof(P, comms_max), 48},
                                 Member{offsetof(P, receives_max), 52},
                                 Member{offsetof(P, net_device_type), 56},
                                 Member{offsetof(P, net_device_version), 60},
                                 Member{offsetof(P, virtual_device), 64},
                                 Member{offsetof(P, p2p_bytes_max), 104},
                                 Member{offsetof(P, collective_bytes_max), 112},
                                 Member{offsetof(P, multi_request_max), 120},
                                 Member{offsetof(P, rail), 124},
                                 Member{offsetof(P, plane), 126}};
static_assert(are_in_place(kProperties) && sizeof(P) == 128);
constexpr std::array kNet{offsetof(N, name),
                          offsetof(N, init),
                          offsetof(N, devices),
                          offsetof(N, get_properties),
                          offsetof(N, listen),
                          offsetof(N, connect),
                          offsetof(N, accept),
                          offsetof(N, register_memory),
                          offsetof(N, register_dma_buf),
                          offsetof(N, deregister_memory),
                          offsetof(N, send),
                          offsetof(N, receive),
                          offsetof(N, flush),
                          offsetof(N, test),
                          offsetof(N, close_send),
                          offsetof(N, close_receive),
                          offsetof(N, close_listen),
                          offsetof(N, device_memory),
                          offsetof(N, receive_consumed),
                          offsetof(N, make_virtual_device),
                          offsetof(N, finalize),
                          offsetof(N, set_attributes)};
static_assert(is_row_of_pointers(kNet) && sizeof(N) == sizeof(kNet));
constexpr std::array kCollNet{offsetof(C, name),
                              offsetof(C, init),
                              offsetof(C, devices),
                              offsetof(C, get_properties),
                              offsetof(C, listen),
                              offsetof(C, connect),
                              offsetof(C, reduce_support),
                              offsetof(C, register_memory),
                              offsetof(C, register_dma_buf),
                              offsetof(C, deregister_memory),
                              offsetof(C, all_reduce),
                              offsetof(C, all_gather),
                              offsetof(C, reduce_scatter),
                              offsetof(C, flush),
                              offsetof(C, test),
                              offsetof(C, close_collective),
                              offsetof(C, close_listen),
                              offsetof(C, make_virtual_device),
                              offsetof(C, finalize)};
static_assert(is_row_of_pointers(kCollNet) && sizeof(C) == sizeof(kCollNet));
}  // namespace v12

// The tuner's versions, from NCCL 2.21.5, 2.22.3, 2.26.5, 2.28.9 and 2.30.7.
namespace tuners {
constexpr std::array kV2{offsetof(TunerV2, name), offsetof(TunerV2, init), offsetof(TunerV2, collective_info),
                         offsetof(TunerV2, destroy)};
constexpr std::array kV3{offsetof(TunerV3, name), offsetof(TunerV3, init), offsetof(TunerV3, collective_info),
                         offsetof(TunerV3, destroy)};
constexpr std::array kV4{offsetof(TunerV4, name), offsetof(TunerV4, init), offsetof(TunerV4, collective_info),
                         offsetof(TunerV4, destroy)};
constexpr std::array kV5{offsetof(TunerV5, name), offsetof(TunerV5, init), offsetof(TunerV5, collective_info),
                         offsetof(TunerV5, finalize)};
constexpr std::array kV6{offsetof(TunerV6, name), offsetof(TunerV6, init), offsetof(TunerV6, collective_info),
                         offsetof(TunerV6, finalize), offsetof(TunerV6, chunk_size)};
static_assert(is_row_of_pointers(kV2) && is_row_of_pointers(kV3) && is_row_of_pointers(kV4) &&
              is_row_of_pointers(kV5) && is_row_of_pointers(kV6));
}  // namespace tuners

TEST(Layouts, AreThoseOfNccl) {
  EXPECT_EQ(kNetVersionOldest, 6);
  EXPECT_EQ(kNetVersionNewest, 12) << "a newer version needs its layouts here";
}

}  // namespace
}  // namespace tributary::nccl::abi
