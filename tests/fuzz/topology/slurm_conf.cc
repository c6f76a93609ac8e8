// Slurm's topology.conf.
#include "tests/fuzz/topology/importing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tributary::manager::import_bytes(tributary::manager::ImportFormat::slurm_conf, data, size);
  return 0;
}
