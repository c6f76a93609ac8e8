#pragma once
// The modules of this process, each of which is loaded when its transport is wanted.
#include "aggregator/modules/dpdk_module.h"
#include "aggregator/modules/verbs_module.h"

namespace tributary::aggregator {

// Both look beside this program, and in the folder of an installation. Errc::unsupported names the package to install.
[[nodiscard]] Result<const VerbsModule*> verbs_module();
[[nodiscard]] Result<const DpdkModule*> dpdk_module();

/// Takes this table instead of a file: for a test with a DPDK of its own, which a process starts only once.
void use_dpdk_module(const DpdkModule& module);

}  // namespace tributary::aggregator
