// Answers of lldpcli as JSON. Neighbours on the wire may send any names and ports.
#include "tests/fuzz/topology/importing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tributary::manager::import_bytes(tributary::manager::ImportFormat::lldp, data, size);
  return 0;
}
