#pragma once
// The modules of this process. Each is loaded when its transport is needed.
#include "aggregator/modules/dpdk_module.h"
#include "aggregator/modules/verbs_module.h"

namespace tributary::aggregator {

// Both functions look for the module beside this program, and in the folder of an installation. Errc::unsupported names
// the package to install.
[[nodiscard]] Result<const VerbsModule*> verbs_module();
[[nodiscard]] Result<const DpdkModule*> dpdk_module();

/// Uses this table instead of a file: for a test that starts DPDK itself, which a process can do only once.
void use_dpdk_module(const DpdkModule& module);

}  // namespace tributary::aggregator
