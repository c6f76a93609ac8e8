#pragma once

namespace tributary::bench {

/// Registers benchmarks with names such as forms/STEP/TYPE/K=INPUTS; STEP is make, add or round.
void register_forms_benchmarks();

}  // namespace tributary::bench
