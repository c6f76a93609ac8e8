#pragma once
// The number of bytes of data that one rank has in a collective: the counters count these bytes.
#include <cstdint>

#include "tributary/protocol/collective.h"
#include "tributary/protocol/frame.h"

namespace tributary::client {

/// Returns the bytes of the collective's vector that this rank contributes or gets.
[[nodiscard]] inline std::uint64_t payload_bytes(const Signature& signature, std::uint32_t nranks) noexcept {
  switch (signature.collective) {
    case Collective::gather:
    case Collective::scatter:
      return signature.count * size_of(signature.dtype);  // the other ranks have one part of the root's vector
    default:
      return amount_in_all(signature.collective, signature.count * size_of(signature.dtype), nranks);
  }
}

}  // namespace tributary::client
