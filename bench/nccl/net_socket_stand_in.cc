// Stand-ins for the parts of NCCL and CUDA that NCCL's socket transport needs: a log for warnings, the unchanged
// environment, and a device 0 that no code uses. bench/nccl/net-socket compiles it together with NCCL's own sources.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "debug.h"
#include "env.h"

int ncclDebugLevel = NCCL_LOG_WARN;
uint64_t ncclDebugMask = 0;
thread_local int ncclDebugNoWarn = 0;

void ncclDebugLog(ncclDebugLogLevel level, unsigned long, const char* file, int line, const char* format, ...) {
  if (level > NCCL_LOG_WARN) return;
  std::va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "NCCL %s:%d ", file, line);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
}
void ncclSetThreadName(pthread_t, const char*, ...) {}
ncclResult_t ncclInitEnv() {
  return ncclSuccess;
}
const char* ncclEnvPluginGetEnv(const char* name) {
  return std::getenv(name);
}

extern "C" {
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int*, cudaDeviceAttr, int) {
  return cudaErrorNoDevice;
}
cudaError_t cudaDeviceGetPCIBusId(char*, int, int) {
  return cudaErrorNoDevice;
}
const char* cudaGetErrorString(cudaError_t) {
  return "there is no CUDA here";
}
}
