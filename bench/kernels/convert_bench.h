#pragma once

namespace tributary::bench {

/// Registers benchmarks with names such as convert/PLACE/CONVERSION; PLACE is the size of the float32 side.
void register_convert_benchmarks();

}  // namespace tributary::bench
