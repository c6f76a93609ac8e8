#pragma once
// Counts which calls went which way, and reports the counts at the end.
#include <cstdint>
#include <string>

#include "client/plugins/mpi/trials.h"

namespace tributary::mpi {

enum class Collective : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  barrier,
  reduce_scatter,
  all_gather,
  gather,
  scatter,
  all_to_all,
  all_to_all_v,      // by messages: see exchange.h
  reduce_scatter_v,  // with counts that differ; they go another way than equal ones
  all_gather_v,
};
inline constexpr std::size_t kCollectives = 12;

/// Counts a call. Any thread may call it.
void count_call(Collective collective, Way way, std::uint64_t bytes) noexcept;
/// Notes why a communicator, or all of them, went without Tributary. The first reason is kept.
void note_reason(const std::string& text);
/// Adds the bytes of a communicator that ends.
void count_paths(std::uint64_t bytes_in_network, std::uint64_t bytes_otherwise) noexcept;
/// Returns the lines of the report.
[[nodiscard]] std::string report_text();

/// Writes a line to standard error, with the library's name before it.
void say(const std::string& line);

}  // namespace tributary::mpi
