#pragma once
// Chooses the way that data take between the ranks of one host, from facts known before the call.
#include <cstddef>
#include <cstdint>

#include "tributary/protocol/types.h"

namespace tributary::tuning {

/// Inputs up to this size travel with the note.
inline constexpr std::size_t kNoteBytes = 8192;
/// The bounds for attached copies. Below them, their system calls cost more than the second copy of the chunked way.
/// Above them, they lose because they read the cache lines of results, which the chunked way writes without reading.
/// Measured with two ranks on two cores of a Sapphire Rapids: a third faster from 512 KiB to 16 MiB, equal at 256 KiB
/// and from 32 MiB on; with more ranks than cores slower everywhere.
inline constexpr std::size_t kAttachBytesMin = std::size_t{512} << 10;
inline constexpr std::size_t kAttachBytesMax = std::size_t{24} << 20;

enum class DataWay : std::uint8_t {
  notes,    // each rank combines the data of all notes
  regions,  // from buffers that all ranks have mapped, to such buffers
  attach,   // the same, through the kernel
  chunks,   // copied into shared memory, reduced there, copied out
};

[[nodiscard]] constexpr bool is_reduction(Collective collective) noexcept {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

/// Returns whether to reach unregistered memory through the kernel, if the kernel permits it.
[[nodiscard]] constexpr bool is_worth_attaching(Collective collective, std::size_t offered_bytes) noexcept {
  return is_reduction(collective) && offered_bytes >= kAttachBytesMin && offered_bytes <= kAttachBytesMax;
}

/// Chooses for a call whose inputs have `offered_bytes` on each rank. `registered`: all buffers of all ranks are
/// registered. `attaches`: the kernel lets ranks copy from each other's memory, no setting forbids it, and there are no
/// more ranks than cores.
[[nodiscard]] constexpr DataWay way_of(Collective collective, std::size_t offered_bytes, bool registered,
                                       bool attaches) noexcept {
  if (offered_bytes <= kNoteBytes) return DataWay::notes;
  if (registered) return DataWay::regions;
  return attaches && is_worth_attaching(collective, offered_bytes) ? DataWay::attach : DataWay::chunks;
}

}  // namespace tributary::tuning
