#include "client/plugins/mpi/contiguous.h"

namespace tributary::mpi {
namespace {

bool has_gaps_or_is_derived(MPI_Datatype type, std::size_t bytes_of_one) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  return combiner != MPI_COMBINER_NAMED || lower != 0 || extent != static_cast<MPI_Aint>(bytes_of_one);
}

}  // namespace

Contiguous::Contiguous(void* buffer, std::size_t count, MPI_Datatype type, std::size_t bytes_of_one)
    : buffer_(static_cast<std::byte*>(buffer)), count_(count), type_(type), bytes_of_one_(bytes_of_one) {
  copied_ = has_gaps_or_is_derived(type, bytes_of_one);
  if (!copied_) return;
  copy_.resize(count * bytes_of_one);
  own_type_ = PMPI_Type_dup(type, &type_) == MPI_SUCCESS;
  if (!own_type_) type_ = type;
}

Contiguous::~Contiguous() {
  if (own_type_) PMPI_Type_free(&type_);
}

std::byte* Contiguous::bytes() noexcept {
  return copied_ ? copy_.data() : buffer_;
}

int Contiguous::load(std::size_t first, std::size_t elements) {
  if (!copied_ || elements == 0) return MPI_SUCCESS;
  const std::byte* const from = buffer_ + static_cast<std::ptrdiff_t>(first) * extent_of(type_);
  std::byte* const to = copy_.data() + first * bytes_of_one_;
  int position = 0;
  const auto bytes = static_cast<int>(elements * bytes_of_one_);
  const int status = PMPI_Pack(from, static_cast<int>(elements), type_, to, bytes, &position, MPI_COMM_SELF);
  return status == MPI_SUCCESS && position != bytes ? MPI_ERR_INTERN : status;
}

int Contiguous::store() {
  if (!copied_ || count_ == 0) return MPI_SUCCESS;
  int position = 0;
  const auto bytes = static_cast<int>(copy_.size());
  return PMPI_Unpack(copy_.data(), bytes, &position, buffer_, static_cast<int>(count_), type_, MPI_COMM_SELF);
}

std::size_t Contiguous::bytes_of(MPI_Datatype type) {
  int bytes = 0;
  if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &bytes) != MPI_SUCCESS || bytes < 0) return 0;
  return static_cast<std::size_t>(bytes);
}

std::ptrdiff_t Contiguous::extent_of(MPI_Datatype type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  return extent;
}

}  // namespace tributary::mpi
