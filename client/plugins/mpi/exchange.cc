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

int Exchange::finish(Message& message, tributary_status status) const {
  message.request = nullptr;
  if (status != TRIBUTARY_OK) return code_of(status, tributary_last_error(communicator_.tributary()));
  return message.side == Side::receives ? message.data->store() : MPI_SUCCESS;
}

int Exchange::wait() {
  for (Message& message : messages_) {
    if (message.request == nullptr) continue;
    const TurningMpi turning;
    const int code = finish(message, tributary_wait(message.request, -1));
    if (code_ == MPI_SUCCESS) code_ = code;
  }
  return code_;
}

std::optional<int> Exchange::ended(std::int64_t nanoseconds) {
  bool all = true;
  for (Message& message : messages_) {
    if (message.request == nullptr) continue;
    const auto status = wait_a_while(message.request, nanoseconds);
    if (status) {
      const int code = finish(message, *status);
      if (code_ == MPI_SUCCESS) code_ = code;
    } else {
      all = false;
      nanoseconds = 0;  // one wait is enough
    }
  }
  return all ? std::optional(code_) : std::nullopt;
}

Communicator::Choice choose_exchange(Communicator& communicator, std::size_t longest) {
  const Settings* const settings = job_settings();
  if (settings == nullptr || communicator.waits_for_manager()) return {};
  // Without measurements each message that is long enough goes by Tributary once there is a communicator.
  const bool decided = !settings->measured && communicator.tributary() != nullptr;
  const std::uint64_t everywhere = decided ? longest : communicator.longest_message(longest);
  if (!decided && everywhere < settings->bytes_min) return {};
  return communicator.choose(Collective::all_to_all_v, everywhere);
}

}  // namespace tributary::mpi
