#pragma once
// Chooses the way of data between the ranks of one host, from facts that are known before the call.
#include <cstddef>
#include <cstdint>

#include "tributary/protocol/types.h"

namespace tributary::tuning {

/// The longest input that travels with the note.
inline constexpr std::size_t kNoteBytes = 8192;
/// The least and the most bytes for attached copies. For fewer bytes, their system calls cost more than the second copy
/// of the chunked way. For more bytes, they are slower because they read the cache lines of results, which the chunked
/// way writes without reading. With two ranks on two cores of a Sapphire Rapids processor, they were a third faster
/// from 512 KiB to 16 MiB, and equal at 256 KiB and from 32 MiB on. With more ranks than cores they are always slower.
inline constexpr std::size_t kAttachBytesMin = std::size_t{512} << 10;
inline constexpr std::size_t kAttachBytesMax = std::size_t{24} << 20;

/// When ranks of one host use cross-memory attach, if the kernel allows it.
enum class AttachUse : std::uint8_t {
  never,
  if_quick,  // if attach_is_quick() (attach_speed.h)
  always,
};

enum class DataWay : std::uint8_t {
  notes,    // each rank combines the data of all notes
  regions,  // ranks read inputs from mapped buffers, and write results to mapped buffers
  attach,   // ranks copy inputs and results from and to other ranks' memory through the kernel
  chunks,   // data are copied into shared memory, reduced there, and copied out
};

[[nodiscard]] constexpr bool is_reduction(Collective collective) noexcept {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

/// Returns whether a call with unregistered memory should use attach, if the kernel allows it.
[[nodiscard]] constexpr bool is_worth_attaching(Collective collective, std::size_t offered_bytes) noexcept {
  return is_reduction(collective) && offered_bytes >= kAttachBytesMin && offered_bytes <= kAttachBytesMax;
}

/// Chooses the way for a call whose inputs have `offered_bytes` on each rank. `registered`: all buffers of all ranks
/// are registered. `attaches`: the kernel lets ranks copy from each other's memory, no setting forbids it, and each
/// rank has a core.
[[nodiscard]] constexpr DataWay way_of(Collective collective, std::size_t offered_bytes, bool registered,
                                       bool attaches) noexcept {
  if (offered_bytes <= kNoteBytes) return DataWay::notes;
  if (registered) return DataWay::regions;
  return attaches && is_worth_attaching(collective, offered_bytes) ? DataWay::attach : DataWay::chunks;
}

}  // namespace tributary::tuning
