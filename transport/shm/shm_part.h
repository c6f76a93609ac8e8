#pragma once
// What the shared-memory connections of one transport have in common, besides the core.
#include "tributary/transport/shm.h"

namespace tributary::transport {

class ShmPart {
 public:
  explicit ShmPart(const ShmSettings& wanted) : settings(wanted) {}
  const ShmSettings settings;
  ShmStatistics statistics;
};

}  // namespace tributary::transport
