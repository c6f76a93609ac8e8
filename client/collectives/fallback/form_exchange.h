#pragma once
// The exact exchange of a strand between the leaders of hosts (kExactSumOfHosts). In place of its inputs every rank
// sends forms of them, and the owner of a part adds its own ranks' inputs and all other ranks' forms, and rounds once.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/collectives/fallback/peer_link.h"
#include "client/operation/host_forms.h"

namespace tributary::client {

class FormExchange {
 public:
  /// The most elements of a message, so that its form fits in a piece.
  [[nodiscard]] static std::uint64_t elements_max(DType dtype) noexcept {
    return form_elements_max(dtype, kPieceBytes);
  }

  struct Shape {
    std::uint32_t ranks = 1;
    std::uint32_t rank = 0;
    std::uint64_t part = 0;  // elements that this rank reduces
  };
  void start(const Operation& operation, const Shape& shape);
  /// Notes where the inputs of this rank's own part begin, in Operation::send.
  void use_own(const std::byte* from) noexcept { own_ = from; }
  /// The forms of earlier rounds are sent.
  void start_round() noexcept { made_count_ = 0; }
  /// Returns the form of `count` elements from this place in Operation::send on; it lives until the next round.
  [[nodiscard]] std::span<const std::byte> form(const std::byte* from, std::uint64_t count);
  /// Takes another rank's form. `at`: the elements' place where inputs lie part by part, in the order of the ranks.
  void take(std::uint64_t at, std::uint64_t count, std::span<const std::byte> form);
  /// Writes the results of this rank's part.
  void reduce(std::byte* into);

 private:
  struct Made {
    const std::byte* from = nullptr;
    std::uint64_t count = 0;
    std::size_t bytes = 0;
    std::unique_ptr<std::byte[]> memory;
  };
  struct Taken {
    std::size_t at = 0;  // the form's place in taken_
    std::size_t bytes = 0;
  };
  [[nodiscard]] Taken& taken(std::uint32_t rank, std::uint64_t piece) { return index_[rank * pieces_ + piece]; }

  const Operation* operation_ = nullptr;
  Shape shape_;
  std::uint64_t pieces_ = 0;  // of a part
  const std::byte* own_ = nullptr;
  std::vector<Made> made_;
  std::size_t made_count_ = 0;  // forms of this round
  std::vector<std::byte> taken_;
  std::vector<Taken> index_;
  HostForms forms_;
  std::vector<kernels::PartialInput> inputs_;
  kernels::ManyPartialSums sums_;
};

}  // namespace tributary::client
