// The text of ibnetdiscover, in both of its forms. A host may set any text as its node description.
#include "tests/fuzz/topology/importing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tributary::manager::import_bytes(tributary::manager::ImportFormat::ibnetdiscover, data, size);
  return 0;
}
