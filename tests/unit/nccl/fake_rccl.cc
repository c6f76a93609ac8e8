// The part of RCCL that the plugin can see: the object to which the logger function belongs.
#include "client/plugins/nccl/abi/base.h"

using namespace tributary::nccl;

extern "C" {
#pragma GCC visibility push(default)
void fake_logger(abi::LogLevel, unsigned long, const char*, int, const char*, ...) {}
#ifdef TRIBUTARY_FAKE_RCCL_CALL
int mscclLoadAlgo() {
  return 0;
}
#endif
#pragma GCC visibility pop
}
