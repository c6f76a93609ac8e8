// Answers of lldpcli as JSON. Names and ports are what neighbours on the wire have said.
#include "tests/fuzz/topology/importing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tributary::manager::import_bytes(tributary::manager::ImportFormat::lldp, data, size);
  return 0;
}
