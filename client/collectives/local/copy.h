#pragma once
// Copies of parts of a vector. Plain ones leave the destination in the cache for whoever reads it next; streamed ones
// go past the caches, which spares the read of every line that is about to be overwritten, and leaves the cache to what
// is still under way.
#include <cstddef>

namespace tributary::client::local {

/// `bytes` may be 0, the ranges are disjoint.
void copy_plain(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
/// The same; visible to others as ordinary stores are.
void copy_streamed(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace tributary::client::local
