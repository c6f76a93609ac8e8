#include "tests/fuzz/topology/importing.h"

#include <cstdio>
#include <cstdlib>

#include "tree-manager/topology/difference.h"
#include "tree-manager/topology/topology_yaml.h"

namespace tributary::manager {

void import_bytes(ImportFormat format, const std::uint8_t* data, std::size_t size) {
  ImportOptions options;
  options.format = format;
  options.included = [](const std::string& name) -> Result<std::string> { return "SwitchName=" + name + " Nodes=n\n"; };
  options.lldp.rails = size % 2 == 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto imported = import_topology({{"fuzz", "machine", text}}, options);
  if (!imported) {
    if (imported.error().message.empty()) std::abort();
    return;
  }
  const std::string yaml = topology_yaml(imported->topology);
  const auto again = parse_topology(yaml, "written");
  if (again && compare(imported->topology, *again).none()) return;
  std::fprintf(stderr, "%s\n%s\n", again ? "read back as another" : again.error().message.c_str(), yaml.c_str());
  std::abort();
}

}  // namespace tributary::manager
