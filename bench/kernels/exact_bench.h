#pragma once

namespace tributary::bench {

/// Registers benchmarks with names such as exact/PLACE/TYPE/K=INPUTS; PLACE is the size of an input.
void register_exact_benchmarks();

}  // namespace tributary::bench
