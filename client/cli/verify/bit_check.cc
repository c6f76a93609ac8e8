#include "client/cli/verify/bit_check.h"

#include <cstring>

#include "client/cli/perf/bench.h"

namespace tributary::cli {
namespace {

void put(std::vector<std::byte>& array, std::size_t index, std::size_t element, std::uint64_t bits) noexcept {
  std::memcpy(array.data() + index * element, &bits, element);
}

std::uint64_t at(const std::vector<std::byte>& array, std::size_t index, std::size_t element) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, array.data() + index * element, element);
  return bits;
}

std::string hex(std::uint64_t bits, std::size_t element) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%0*llX", static_cast<int>(2 * element), static_cast<unsigned long long>(bits));
  return text;
}

}  // namespace

std::string to_string(const BitCase& of) {
  return std::string(to_string(of.collective)) + " (" + std::string(to_string(of.op)) + ") of " +
         std::to_string(of.count) + " " + std::string(to_string(of.dtype)) + ", " + std::string(to_string(of.family)) +
         ", seed " + std::to_string(of.seed);
}

void BitTally::count(const std::vector<std::byte>& bytes) noexcept {
  for (const std::byte byte : bytes) digest = (digest ^ static_cast<std::uint8_t>(byte)) * 1099511628211ULL;  // FNV-1a
}

BitCheck::BitCheck(const BitCase& of, std::uint32_t rank, std::uint32_t ranks)
    : case_(of), rank_(rank), ranks_(ranks), root_(static_cast<std::uint32_t>(of.seed % ranks)) {
  const FloatBits format = float_bits_of(of.dtype);
  const std::size_t element = size_of(of.dtype);
  const bool scatters = of.collective == Collective::reduce_scatter;
  const std::uint64_t elements = of.count * (scatters ? ranks : 1);
  input_.resize(elements * element);
  for (std::uint64_t i = 0; i < elements; ++i)
    put(input_, i, element, bits_of_input(format, of.family, of.seed, rank, i));
  exact_.resize(of.count * element);
  const std::uint64_t first = scatters ? rank * of.count : 0;
  for (std::uint64_t i = 0; i < of.count; ++i)
    put(exact_, i, element, of.op == ReduceOp::prod ? product(first + i) : sum(first + i));
}

std::uint64_t BitCheck::sum(std::uint64_t place) const noexcept {
  const FloatBits format = float_bits_of(case_.dtype);
  BitSum total(format);
  for (std::uint32_t r = 0; r < ranks_; ++r) total.add(bits_of_input(format, case_.family, case_.seed, r, place));
  return total.rounded(case_.op == ReduceOp::avg ? ranks_ : 1);
}

/// The order of the ranks decides how a product is rounded.
std::uint64_t BitCheck::product(std::uint64_t place) const noexcept {
  const FloatBits format = float_bits_of(case_.dtype);
  double value = 1;
  for (std::uint32_t r = 0; r < ranks_; ++r)
    value *= value_of(format, bits_of_input(format, case_.family, case_.seed, r, place));
  return bits_of_product(format, value);
}

bool BitCheck::has_result() const noexcept {
  return case_.collective != Collective::reduce || rank_ == root_;
}

tributary_status BitCheck::call(tributary_comm* comm, std::vector<std::byte>& out) const {
  const auto dtype = static_cast<tributary_dtype>(case_.dtype);
  const auto op = static_cast<tributary_op>(case_.op);
  switch (case_.collective) {
    case Collective::reduce:
      return tributary_reduce(input_.data(), out.data(), case_.count, dtype, op, static_cast<int>(root_), comm,
                              nullptr);
    case Collective::reduce_scatter:
      return tributary_reduce_scatter(input_.data(), out.data(), case_.count, dtype, op, comm, nullptr);
    default:
      return tributary_all_reduce(input_.data(), out.data(), case_.count, dtype, op, comm, nullptr);
  }
}

Status BitCheck::run(tributary_comm* comm, BitTally& tally) const {
  std::vector<std::byte> out(exact_.size());
  if (const auto status = call(comm, out); status != TRIBUTARY_OK) {
    Error error = error_of(status, comm);
    error.message = to_string(case_) + ": " + error.message;
    return std::unexpected(std::move(error));
  }
  ++tally.calls;
  if (!has_result()) return {};
  tally.elements += case_.count;
  if (case_.collective == Collective::all_reduce) tally.count(out);
  if (out == exact_) return {};
  const std::size_t element = size_of(case_.dtype);
  for (std::uint64_t i = 0; i < case_.count; ++i) {
    const std::uint64_t got = at(out, i, element), exact = at(exact_, i, element);
    if (got == exact) continue;
    ++tally.wrong;
    if (tally.first_wrong.empty()) {
      tally.first_wrong = to_string(case_) + ": element " + std::to_string(i) + " is " + hex(got, element) + ", not " +
                          hex(exact, element);
    }
  }
  return {};
}

}  // namespace tributary::cli
