#pragma once
// How many bytes of data one rank has in a collective; what the counters count.
#include <cstdint>

#include "tributary/protocol/frame.h"

namespace tributary::client {

/// This rank's share: its input, or what it is given where it has none (all_gather: its output).
[[nodiscard]] inline std::uint64_t payload_bytes(const Signature& signature, std::uint32_t nranks) noexcept {
  const std::uint64_t bytes = signature.count * size_of(signature.dtype);
  switch (signature.collective) {
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return bytes * nranks;
    case Collective::barrier:
      return 0;
    default:
      return bytes;
  }
}

}  // namespace tributary::client
