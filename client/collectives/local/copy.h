#pragma once
// Copies of parts of a vector. A plain copy leaves the destination in the cache for its next reader. A streamed copy
// goes past the caches: it saves the read of every line that it is about to overwrite, and leaves the cache to data
// that are still in use.
#include <cstddef>

namespace tributary::client::local {

/// `bytes` may be 0; the ranges are disjoint.
void copy_plain(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
/// Copies past the caches; other threads see these stores as they see ordinary stores.
void copy_streamed(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

}  // namespace tributary::client::local
