#pragma once

namespace tributary::bench {

/// convert/PLACE/CONVERSION; PLACE is the size of the float32 side.
void register_convert_benchmarks();

}  // namespace tributary::bench
