// MPI_Reduce_scatter with counts that differ. The parts of all ranks travel as parts of the size of the largest one,
// because libtributary's parts have one size.
#include <algorithm>

#include "client/plugins/mpi/call.h"
#include "client/plugins/mpi/contiguous.h"

namespace tributary::mpi {
namespace {

/// One call; a persistent request starts it several times.
class Padded {
 public:
  Padded(PartCounts counts, std::size_t rank, std::size_t bytes_of_one)
      : counts_(std::move(counts)),
        rank_(rank),
        bytes_of_one_(bytes_of_one),
        part_bytes_(bytes(std::ranges::max(counts_))) {}

  /// Copies the input into parts of one size. Zeros fill the gaps; no rank reads what becomes of them.
  void load(const void* input) {
    input_.resize(part_bytes_ * counts_.size());
    result_.resize(part_bytes_);
    const auto* from = static_cast<const std::byte*>(input);
    std::byte* to = input_.data();
    for (const Count elements : counts_) {
      std::copy_n(from, bytes(elements), to);
      from += bytes(elements);
      to += part_bytes_;
    }
  }
  /// Copies the part of this rank out of the result.
  void store(void* output) const {
    std::copy_n(result_.data(), bytes(counts_[rank_]), static_cast<std::byte*>(output));
  }
  [[nodiscard]] const void* input() const noexcept { return input_.data(); }
  [[nodiscard]] void* result() noexcept { return result_.data(); }

  std::optional<Call> inner;  // the call with equal counts

 private:
  [[nodiscard]] std::size_t bytes(Count elements) const noexcept {
    return static_cast<std::size_t>(elements) * bytes_of_one_;
  }

  const PartCounts counts_;
  const std::size_t rank_;
  const std::size_t bytes_of_one_;
  const std::size_t part_bytes_;
  std::vector<std::byte> input_, result_;
};

}  // namespace

std::optional<Call> reduce_scatter_call(const void* send, void* recv, const PartCounts& counts, MPI_Datatype type,
                                        MPI_Op op, const Communicator& communicator) {
  const Count largest = std::ranges::max(counts);
  const auto equal = reduce_scatter_call(nullptr, nullptr, largest, type, op, communicator);  // has it a form?
  if (!equal) return std::nullopt;
  const auto padded = std::make_shared<Padded>(counts, static_cast<std::size_t>(communicator.rank()),
                                               static_cast<std::size_t>(Contiguous::extent_of(type)));
  const void* const input = send == MPI_IN_PLACE ? recv : send;
  return Call{.collective = Collective::reduce_scatter_v,
              .bytes = equal->bytes,
              .start =
                  [=, &communicator](tributary_comm* comm, tributary_request** request) {
                    padded->load(input);
                    padded->inner =
                        reduce_scatter_call(padded->input(), padded->result(), largest, type, op, communicator);
                    return padded->inner->start(comm, request);
                  },
              .finish =
                  [=] {
                    const int code = padded->inner->finish();
                    padded->store(recv);
                    return code;
                  }};
}

}  // namespace tributary::mpi
