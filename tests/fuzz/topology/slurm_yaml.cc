// Slurm's topology.yaml.
#include "tests/fuzz/topology/importing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tributary::manager::import_bytes(tributary::manager::ImportFormat::slurm_yaml, data, size);
  return 0;
}
