#include "client/plugins/mpi/exchange.h"

#include "client/plugins/mpi/progress.h"

namespace tributary::mpi {

bool Exchange::take(Side side, int peer, void* begin, Count count, MPI_Datatype type) {
  const std::size_t bytes = bytes_of(count, type);
  const Settings* const settings = job_settings();
  if (peer == communicator_.rank() || bytes == 0 || settings == nullptr || bytes < settings->bytes_min) return false;
  if (bytes > Contiguous::kBytesMax) return false;
  const auto elements = static_cast<std::size_t>(count);
  messages_.push_back({.side = side,
                       .peer = peer,
                       .elements = elements,
                       .data = std::make_unique<Contiguous>(begin, elements, type, Contiguous::bytes_of(type))});
  return true;
}

std::size_t Exchange::bytes_received() const noexcept {
  std::size_t sum = 0;
  for (const Message& message : messages_) {
    if (message.side == Side::receives) sum += message.elements * message.data->bytes_of_one();
  }
  return sum;
}

tributary_status Exchange::start(Message& message) const {
  const std::size_t bytes = message.elements * message.data->bytes_of_one();
  tributary_comm* const comm = communicator_.tributary();
  if (message.side == Side::receives)
    return tributary_recv(message.data->bytes(), bytes, TRIBUTARY_UINT8, message.peer, comm, &message.request);
  if (message.data->load(0, message.elements) != MPI_SUCCESS) return TRIBUTARY_ERROR_INTERNAL;
  return tributary_send(message.data->bytes(), bytes, TRIBUTARY_UINT8, message.peer, comm, &message.request);
}

int Exchange::start() {
  for (Message& message : messages_) {
    const tributary_status status = start(message);
    if (status != TRIBUTARY_OK) return code_of(status, tributary_last_error(communicator_.tributary()));
  }
  return MPI_SUCCESS;
}

int Exchange::finish(Message& message) const {
  const tributary_status status = wait_and_turn_mpi(message.request);
  if (status != TRIBUTARY_OK) return code_of(status, tributary_last_error(communicator_.tributary()));
  return message.side == Side::receives ? message.data->store() : MPI_SUCCESS;
}

int Exchange::wait() {
  int code = MPI_SUCCESS;
  for (Message& message : messages_) {
    if (message.request == nullptr) continue;
    const int ended = finish(message);
    if (code == MPI_SUCCESS) code = ended;
  }
  return code;
}

bool wants_exchange(const Communicator& communicator, std::size_t longest, MPI_Comm comm) {
  if (communicator.tributary() != nullptr) return true;
  const Settings* const settings = job_settings();
  int wanted = settings != nullptr && longest >= settings->bytes_min ? 1 : 0;
  return PMPI_Allreduce(MPI_IN_PLACE, &wanted, 1, MPI_INT, MPI_MAX, comm) == MPI_SUCCESS && wanted != 0;
}

}  // namespace tributary::mpi
