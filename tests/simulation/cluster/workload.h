#pragma once
// The work of the simulated ranks: a seeded list of collective calls, inputs that differ in every element of every
// rank, and the expected results by a plain loop.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tributary/protocol/frame.h"

namespace tributary::simulation {

struct Call {
  Signature signature;
  bool in_place = false;
  bool multiplied = false;  // a pre-multiplied sum: each rank multiplies its input by factor_of() first
};

struct WorkloadSettings {
  std::uint32_t calls = 20;
  std::uint64_t count_max = 3000;
  bool direct = true;  // true: the list also has all_to_all, gather and scatter
  std::optional<Collective> only;
  bool always_in_place = false;
  // True: some sums, averages and products of floats have exact numerics. In some sums and averages each rank acts for a
  // host of several ranks.
  bool exact = false;
  bool multiplied = false;            // every second sum without exact numerics is pre-multiplied
  std::optional<ReduceOp> exactly{};  // every call has this operator of exact numerics, of float32 or float64
};

[[nodiscard]] std::vector<Call> make_calls(std::mt19937_64& random, std::uint32_t nranks,
                                           const WorkloadSettings& settings);

/// The buffers of one rank in one call.
struct Buffers {
  std::vector<std::byte> send, recv;           // in place: send is empty and the input lies in recv
  std::size_t in_place_offset = 0;             // place within recv where the input begins, in bytes
  std::vector<std::vector<std::byte>> others;  // exact sums between hosts: the inputs of further ranks of the host
  std::unique_ptr<std::byte[]> products;       // of a pre-multiplied sum, unless they lie in recv
};

[[nodiscard]] Buffers make_buffers(const Call& call, std::uint64_t salt, std::uint32_t rank, std::uint32_t nranks);
/// Returns this rank's factor of a pre-multiplied sum: one element of the call's dtype.
[[nodiscard]] std::array<std::byte, 8> factor_of(const Call& call, std::uint32_t rank);
/// Returns the number of elements of this rank's input.
[[nodiscard]] std::uint64_t input_elements(const Call& call, std::uint32_t rank, std::uint32_t nranks);
/// Returns an empty text if `buffers` are right after the call; else a sentence about the fault.
[[nodiscard]] std::string check(const Call& call, const Buffers& buffers, std::uint64_t salt, std::uint32_t rank,
                                std::uint32_t nranks);

}  // namespace tributary::simulation
