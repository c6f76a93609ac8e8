#include "client/api/products.h"

#include "tributary/kernels/multiply_by.h"
#include "tributary/protocol/assert.h"

namespace tributary::client {

std::unique_ptr<std::byte[]> multiply_input(CheckedCall& call) {
  TRIBUTARY_ASSERT(call.factor && !call.multiplied && call.factor->dtype == call.signature.dtype,
                   "{} has no factor of its type, or was multiplied already", to_string(call.signature));
  std::unique_ptr<std::byte[]> memory;
  std::byte* products = call.recv;
  call.in_place = call.recv != nullptr && call.recv_bytes == call.send_bytes;
  if (!call.in_place) {
    // A buffer of another size: of one part, or of a rank that gets no result. The caller's input stays as it is.
    memory = std::make_unique_for_overwrite<std::byte[]>(call.send_bytes);
    products = memory.get();
  }
  kernels::multiply_by(call.signature.dtype, call.send, call.factor->value.data(), products,
                       call.send_bytes / size_of(call.signature.dtype));
  call.send = products;
  call.multiplied = true;
  return memory;
}

}  // namespace tributary::client
