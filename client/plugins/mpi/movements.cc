// Calls of the collectives that move data. Their buffers may have any type.
#include <algorithm>
#include <cstring>
#include <vector>

#include "client/plugins/mpi/call.h"
#include "client/plugins/mpi/contiguous.h"

namespace tributary::mpi {
namespace {

/// The part of a buffer that belongs to one rank.
struct Part {
  std::size_t elements;
  std::size_t bytes_of_one;
  [[nodiscard]] std::size_t bytes() const noexcept { return elements * bytes_of_one; }
};

/// Returns nullopt if libtributary cannot move `parts` such parts.
std::optional<Part> part_of(Count count, MPI_Datatype type, std::size_t parts) {
  const std::size_t bytes_of_one = count <= 0 ? 0 : Contiguous::bytes_of(type);
  if (bytes_of_one == 0) return std::nullopt;
  const auto elements = static_cast<std::size_t>(count);
  if (elements > Contiguous::kBytesMax / bytes_of_one / parts) return std::nullopt;
  return Part{.elements = elements, .bytes_of_one = bytes_of_one};
}

using Buffer = std::shared_ptr<Contiguous>;

Buffer buffer_of(const void* memory, const Part& part, std::size_t parts, MPI_Datatype type) {
  return std::make_shared<Contiguous>(const_cast<void*>(memory), part.elements * parts, type, part.bytes_of_one);
}

Buffer buffer_of(const Sent& sent) {
  return std::make_shared<Contiguous>(const_cast<void*>(sent.buffer), static_cast<std::size_t>(sent.count), sent.type,
                                      Contiguous::bytes_of(sent.type));
}

/// The memory of the rank's own part, at the beginning of a call.
struct Own {
  Buffer buffer;
  std::size_t first;  // the part's first element in the buffer
  Part part;

  [[nodiscard]] std::byte* bytes() const { return buffer->bytes() + first * part.bytes_of_one; }
  [[nodiscard]] int load() const { return buffer->load(first, part.elements); }
};

/// Returns the part that this rank sends: in place it lies in `whole`, which has one part for each rank.
Own own_of(const Sent& sent, const Buffer& whole, const Part& part, int rank) {
  if (sent.buffer == MPI_IN_PLACE) return {whole, static_cast<std::size_t>(rank) * part.elements, part};
  const std::size_t bytes_of_one = Contiguous::bytes_of(sent.type);
  return {buffer_of(sent), 0, {static_cast<std::size_t>(sent.count), bytes_of_one}};
}

std::size_t ranks_of(const Communicator& communicator) {
  return static_cast<std::size_t>(communicator.size());
}

}  // namespace

std::optional<Call> broadcast_call(void* buffer, Count count, MPI_Datatype type, int root,
                                   const Communicator& communicator) {
  const auto part = part_of(count, type, 1);
  if (!part || !communicator.has(root)) return std::nullopt;
  const Part of = *part;
  const Buffer data = buffer_of(buffer, of, 1, type);
  const bool here = communicator.rank() == root;
  return Call{.collective = Collective::broadcast,
              .bytes = of.bytes(),
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    if (here && data->load(0, of.elements) != MPI_SUCCESS) return TRIBUTARY_ERROR_INTERNAL;
                    return tributary_broadcast(data->bytes(), data->bytes(), of.bytes(), TRIBUTARY_UINT8, root, comm,
                                               request);
                  },
              .finish = [=] { return here ? MPI_SUCCESS : data->store(); }};
}

std::optional<Call> all_gather_call(const Sent& sent, const Received& received, const Communicator& communicator) {
  const std::size_t ranks = ranks_of(communicator);
  const auto part = part_of(received.count, received.type, ranks);
  if (!part) return std::nullopt;
  const Part of = *part;
  const Buffer whole = buffer_of(received.buffer, of, ranks, received.type);
  const Own own = own_of(sent, whole, of, communicator.rank());
  return Call{.collective = Collective::all_gather,
              .bytes = of.bytes() * ranks,
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    if (own.load() != MPI_SUCCESS) return TRIBUTARY_ERROR_INTERNAL;
                    return tributary_all_gather(own.bytes(), whole->bytes(), of.bytes(), TRIBUTARY_UINT8, comm,
                                                request);
                  },
              .finish = [=] { return whole->store(); }};
}

std::optional<Call> all_gather_call(const Sent& sent, const ReceivedParts& received, const Communicator& communicator) {
  const std::size_t ranks = ranks_of(communicator);
  const auto largest = part_of(std::ranges::max(received.counts), received.type, ranks);
  if (!largest) return std::nullopt;
  const Part of = *largest;  // each part travels with this size
  const bool equal = std::ranges::count(received.counts, received.counts.front()) == communicator.size();
  const std::ptrdiff_t extent = Contiguous::extent_of(received.type);
  const auto parts = std::make_shared<const ReceivedParts>(received);
  const auto part = [=](std::size_t rank) {
    return Part{.elements = static_cast<std::size_t>(parts->counts[rank]), .bytes_of_one = of.bytes_of_one};
  };
  const auto place = [=](std::size_t rank) {
    void* const begin = static_cast<std::byte*>(parts->buffer) + parts->displacements[rank] * extent;
    return buffer_of(begin, part(rank), 1, parts->type);
  };
  const bool in_place = sent.buffer == MPI_IN_PLACE;
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const Own own = in_place ? Own{place(rank), 0, part(rank)} : own_of(sent, nullptr, part(rank), communicator.rank());
  const auto gathered = std::make_shared<std::vector<std::byte>>();
  return Call{.collective = equal ? Collective::all_gather : Collective::all_gather_v,
              .bytes = of.bytes() * ranks,
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    if (own.load() != MPI_SUCCESS) return TRIBUTARY_ERROR_INTERNAL;
                    gathered->resize(of.bytes() * ranks);
                    const std::byte* from = own.bytes();
                    if (own.part.bytes() < of.bytes()) {
                      std::byte* const padded = gathered->data() + rank * of.bytes();
                      std::copy_n(from, own.part.bytes(), padded);
                      from = padded;
                    }
                    return tributary_all_gather(from, gathered->data(), of.bytes(), TRIBUTARY_UINT8, comm, request);
                  },
              .finish =
                  [=] {
                    for (std::size_t from = 0; from < ranks; ++from) {
                      const Buffer to = place(from);
                      std::copy_n(gathered->data() + from * of.bytes(), part(from).bytes(), to->bytes());
                      if (const int code = to->store(); code != MPI_SUCCESS) return code;
                    }
                    return MPI_SUCCESS;
                  }};
}

std::optional<Call> gather_call(const Sent& sent, const Received& received, int root,
                                const Communicator& communicator) {
  if (!communicator.has(root)) return std::nullopt;
  const bool here = communicator.rank() == root;
  const std::size_t ranks = ranks_of(communicator);
  const auto part = here ? part_of(received.count, received.type, ranks) : part_of(sent.count, sent.type, ranks);
  if (!part) return std::nullopt;
  const Part of = *part;
  const Buffer whole = here ? buffer_of(received.buffer, of, ranks, received.type) : nullptr;
  const Own own = here ? own_of(sent, whole, of, root) : Own{buffer_of(sent), 0, of};
  return Call{.collective = Collective::gather,
              .bytes = of.bytes() * ranks,
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    if (own.load() != MPI_SUCCESS) return TRIBUTARY_ERROR_INTERNAL;
                    return tributary_gather(own.bytes(), here ? whole->bytes() : nullptr, of.bytes(), TRIBUTARY_UINT8,
                                            root, comm, request);
                  },
              .finish = [=] { return here ? whole->store() : MPI_SUCCESS; }};
}

std::optional<Call> scatter_call(const Sent& sent, const Received& received, int root,
                                 const Communicator& communicator) {
  if (!communicator.has(root)) return std::nullopt;
  const bool here = communicator.rank() == root;
  const std::size_t ranks = ranks_of(communicator);
  const auto part = here ? part_of(sent.count, sent.type, ranks) : part_of(received.count, received.type, ranks);
  if (!part) return std::nullopt;
  const Part of = *part;
  const Buffer whole = here ? buffer_of(sent.buffer, of, ranks, sent.type) : nullptr;
  const bool in_place = here && received.buffer == MPI_IN_PLACE;
  const Sent result{received.buffer, received.count, received.type};
  const Own own =
      in_place ? Own{whole, static_cast<std::size_t>(root) * of.elements, of} : Own{buffer_of(result), 0, of};
  return Call{.collective = Collective::scatter,
              .bytes = of.bytes() * ranks,
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    if (here && whole->load(0, of.elements * ranks) != MPI_SUCCESS) return TRIBUTARY_ERROR_INTERNAL;
                    return tributary_scatter(here ? whole->bytes() : nullptr, own.bytes(), of.bytes(), TRIBUTARY_UINT8,
                                             root, comm, request);
                  },
              .finish = [=] { return in_place ? MPI_SUCCESS : own.buffer->store(); }};
}

std::optional<Call> all_to_all_call(const Sent& sent, const Received& received, const Communicator& communicator) {
  const std::size_t ranks = ranks_of(communicator);
  const auto part = part_of(received.count, received.type, ranks);
  if (!part) return std::nullopt;
  const Part of = *part;
  const std::size_t bytes = of.bytes() * ranks;
  const bool in_place = sent.buffer == MPI_IN_PLACE;
  const Buffer output = buffer_of(received.buffer, of, ranks, received.type);
  const std::size_t elements = in_place ? of.elements : static_cast<std::size_t>(sent.count);
  const Buffer input = in_place ? output : buffer_of({sent.buffer, sent.count * communicator.size(), sent.type});
  // libtributary has no all_to_all in place.
  const auto copy = std::make_shared<std::vector<std::byte>>(in_place ? bytes : 0);
  return Call{.collective = Collective::all_to_all,
              .bytes = bytes,
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    if (input->load(0, elements * ranks) != MPI_SUCCESS) return TRIBUTARY_ERROR_INTERNAL;
                    if (in_place) std::memcpy(copy->data(), input->bytes(), bytes);
                    return tributary_all_to_all(in_place ? copy->data() : input->bytes(), output->bytes(), of.bytes(),
                                                TRIBUTARY_UINT8, comm, request);
                  },
              .finish = [=] { return output->store(); }};
}

}  // namespace tributary::mpi
