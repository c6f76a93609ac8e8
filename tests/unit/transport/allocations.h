#pragma once
// Counts the calls of operator new in this program (allocations.cc replaces it).
#include <cstdint>

namespace tributary::transport::test {
std::uint64_t allocations_so_far();
}
