#pragma once
// The binary layout of NCCL's plugin interface: numbers, sizes and the order of members, from the published layouts.
// The build needs no header of NCCL. The tests compare this file with NCCL's header if it is installed.
#include <cstddef>
#include <cstdint>

namespace tributary::nccl::abi {

enum class Result : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

enum class DataType : int {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
  float8_e4m3 = 10,
  float8_e5m2 = 11,
};
inline constexpr int kDataTypes = 12;

enum class RedOp : int { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };
inline constexpr int kRedOps = 5;

enum class LogLevel : int { none = 0, version = 1, warn = 2, info = 3, abort = 4, trace = 5 };
namespace log_subsystem {
inline constexpr unsigned long kInit = 0x1;
inline constexpr unsigned long kNet = 0x10;
inline constexpr unsigned long kTuning = 0x40;
inline constexpr unsigned long kAll = ~0UL;
}  // namespace log_subsystem

using Logger = void (*)(LogLevel level, unsigned long subsystems, const char* file, int line, const char* format, ...);
using ProfilerCallback = Result (*)(void** event, int type, void* parent, std::int64_t plugin, void* extra);

namespace profiler {
inline constexpr int kStart = 0, kStop = 1;  // kinds of calls
inline constexpr std::int64_t kSocketPlugin =
    (2 << 16) | 1;  // the caller is a socket transport; version 1 of its events
}  // namespace profiler
inline constexpr std::uint8_t kSocketEvent = 1;
/// ncclProfilerNetSockDescr_v1_t.
struct SocketEvent {
  std::uint8_t type;
  alignas(8) int descriptor;
  int operation;
  std::size_t bytes;
};
static_assert(sizeof(SocketEvent) == 24 && offsetof(SocketEvent, descriptor) == 8 &&
              offsetof(SocketEvent, operation) == 12 && offsetof(SocketEvent, bytes) == 16);

inline constexpr int kPointerHost = 0x1;
inline constexpr int kPointerCuda = 0x2;
inline constexpr int kPointerDmaBuf = 0x4;

inline constexpr std::size_t kHandleBytes = 128;              // number of bytes that listen() may fill
inline constexpr std::size_t kTransferBytesMax = 1ULL << 40;  // the largest value of maxP2pBytes and maxCollBytes

/// The offload to the GPU that connect and accept may offer to NCCL. This plugin never offers it.
struct DeviceHandle {
  int type;
  int version;
  void* handle;
  std::size_t bytes;
  int needs_proxy_progress;
};
static_assert(sizeof(DeviceHandle) == 32 && offsetof(DeviceHandle, handle) == 8);

inline constexpr int kNoTrafficClass = -1;  // NCCL's number where the application has set none
struct CommConfig {
  int traffic_class;
};
static_assert(sizeof(CommConfig) == 4);

}  // namespace tributary::nccl::abi
