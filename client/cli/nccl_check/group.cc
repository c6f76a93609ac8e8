#include "client/cli/nccl_check/group.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "client/cli/nccl_check/values.h"

namespace tributary::cli::nccl_check {
namespace {

void scribble(std::span<std::byte> over, unsigned seed) {
  for (std::size_t i = 0; i < over.size(); ++i)
    over[i] = static_cast<std::byte>(0xff - (seed + i) % 3);  // a NaN for floats
}

}  // namespace

Group::Group(Session& session, int number)
    : session_(session),
      number_(number),
      handle_(abi::kHandleBytes),
      region_(2 * static_cast<std::size_t>(session.options().depth) * kChunkBytes),
      next_seed_(static_cast<unsigned>(number) * 1000U) {
  for (std::size_t place = static_cast<std::size_t>(session.options().depth); place > 0; --place) {
    free_places_.push_back(place - 1);
  }
}

std::span<std::byte> Group::send_place(std::size_t place) {
  return std::span(region_).subspan(place * kChunkBytes, kChunkBytes);
}

std::span<std::byte> Group::receive_place(std::size_t place) {
  return std::span(region_).subspan(region_.size() / 2 + place * kChunkBytes, kChunkBytes);
}

void Group::listen() {
  require_success(session_.collnet().listen(session_.collnet_context(), 0, handle_.data(), &listen_comm_), "listen");
  require(listen_comm_ != nullptr, "listen gave no listenComm");
}

bool Group::connect(std::vector<std::byte> handles) {
  std::vector<void*> list;
  for (int rank = 0; rank < session_.ranks(); ++rank) {
    list.push_back(handles.data() + static_cast<std::size_t>(rank) * abi::kHandleBytes);
  }
  if (session_.collnet().connect(list.data(), session_.ranks(), session_.rank(), listen_comm_, &comm_) !=
      Result::success) {
    listen_comm_ = nullptr;  // NCCL does not close it
    return false;
  }
  require(comm_ != nullptr, "connect gave no collComm");
  require_success(session_.collnet().close_listen(listen_comm_), "CollNet closeListen");
  return true;
}

// Registers the same region twice for each channel, as NCCL does: the sending proxy and the receiving proxy register
// it.
void Group::register_memory() {
  for (int i = 0; i < 2 * session_.options().channels; ++i) {
    void* memory = nullptr;
    require_success(
        session_.collnet().register_memory(comm_, region_.data(), region_.size(), abi::kPointerHost, &memory),
        "CollNet regMr");
    require(memory != nullptr, "regMr gave no handle");
    memory_.push_back(memory);
  }
}

void Group::register_and_deregister() {
  for (int i = 0; i < 16; ++i) {
    void* memory = nullptr;
    require_success(
        session_.collnet().register_memory(comm_, region_.data(), region_.size() / 2, abi::kPointerHost, &memory),
        "CollNet regMr");
    require_success(session_.collnet().deregister_memory(comm_, memory), "CollNet deregMr");
  }
}

void Group::close() {
  for (void* memory : memory_) require_success(session_.collnet().deregister_memory(comm_, memory), "CollNet deregMr");
  require_success(session_.collnet().close_collective(comm_), "closeColl");
}

bool Group::start(const Operation& operation) {
  if (free_places_.empty()) return false;
  Flight flight{operation, next_seed_, free_places_.back(), nullptr};
  const auto from = send_place(flight.place).first(operation.bytes);
  scribble(from.subspan(operation.bytes_used), flight.seed);
  fill(from.first(operation.bytes_used), operation.type, operation.op, session_.rank(), session_.ranks(), flight.seed);
  const auto to = receive_place(flight.place).first(operation.bytes);
  require_success(
      session_.collnet().all_reduce(comm_, from.data(), to.data(), operation.bytes / size_of(operation.type),
                                    operation.type, operation.op, memory_.front(), memory_.back(), &flight.request),
      "iallreduce");
  if (flight.request == nullptr) {
    ++put_off_;
    return false;
  }
  ++next_seed_;
  free_places_.pop_back();
  in_flight_.push_back(flight);
  return true;
}

bool Group::poll(bool unchecked) {
  for (auto flight = in_flight_.begin(); flight != in_flight_.end(); ++flight) {
    int done = 7, size = -1;  // NCCL does not set these variables before the call
    require_success(session_.collnet().test(flight->request, &done, &size), "test");
    require(done == 0 || done == 1, "test did not write done");
    if (done == 0) continue;
    require(size == static_cast<int>(flight->operation.bytes), "test gave the wrong size");
    if (!unchecked) check(*flight);
    free_places_.push_back(flight->place);
    in_flight_.erase(flight);
    ++ended_;
    return true;
  }
  return false;
}

void Group::check(const Flight& flight) {
  const Operation& operation = flight.operation;
  std::vector<std::byte> expected(operation.bytes_used);
  fill_result(expected, operation.type, operation.op, session_.ranks(), flight.seed);
  const auto got = receive_place(flight.place).first(operation.bytes_used);
  const auto [wrong, right] = std::ranges::mismatch(got, expected);
  require(wrong == got.end(), "communicator " + std::to_string(number_) + ": " + name_of(operation.op) + " of " +
                                  name_of(operation.type) + " is wrong from byte " +
                                  std::to_string(wrong - got.begin()) + " of " + std::to_string(operation.bytes) +
                                  " on");
}

void Group::finish(void* request) {
  for (int done = 0; done == 0; std::this_thread::yield()) {
    require_success(session_.collnet().test(request, &done, nullptr), "test");
  }
}

// Checks windows as NCCL makes them: they begin and end anywhere, and may contain parts of several ranks, or only of
// another rank.
void Group::check_windows() {
  const bool gathers = session_.collnet().has_all_gather(), scatters = session_.collnet().has_reduce_scatter();
  const std::size_t per_rank = 3000 * sizeof(float);
  const std::size_t all = per_rank * static_cast<std::size_t>(session_.ranks());
  for (const auto& [offset, bytes] : {std::pair{std::size_t{0}, all},
                                      {std::size_t{0}, per_rank / 2},
                                      {per_rank / 2, per_rank},
                                      {all - 64, std::size_t{64}},
                                      {per_rank / 4, all / 2}}) {
    if (gathers) check_gather_window(per_rank, offset, std::min(bytes, all - offset));
    if (scatters) check_scatter_window(per_rank, offset, std::min(bytes, all - offset));
  }
}

void Group::check_gather_window(std::size_t per_rank, std::size_t offset, std::size_t bytes) {
  const auto rank = static_cast<std::size_t>(session_.rank());
  std::vector<std::byte> everything(per_rank * static_cast<std::size_t>(session_.ranks()));
  for (std::size_t i = 0; i < everything.size(); ++i)
    everything[i] = static_cast<std::byte>(i * 31 + i / 251 + next_seed_);
  ++next_seed_;
  const auto mine = send_place(0).first(per_rank);
  std::memcpy(mine.data(), everything.data() + rank * per_rank, per_rank);
  // The data to send start at the place in the window where this rank's part starts.
  const std::size_t begin = offset > rank * per_rank && offset < (rank + 1) * per_rank ? offset - rank * per_rank : 0;
  std::vector<std::byte> window(bytes);
  void* request = nullptr;
  while (request == nullptr) {
    require_success(session_.collnet().all_gather(comm_, mine.data() + begin, {memory_.back(), window.data(), bytes},
                                                  per_rank, offset, bytes, memory_.front(), &request),
                    "iallgather");
  }
  finish(request);
  require(std::memcmp(window.data(), everything.data() + offset, bytes) == 0,
          "iallgather: the window of " + std::to_string(bytes) + " bytes at " + std::to_string(offset) + " is wrong");
}

void Group::check_scatter_window(std::size_t per_rank, std::size_t offset, std::size_t bytes) {
  const auto rank = static_cast<std::size_t>(session_.rank());
  const unsigned seed = next_seed_++;
  std::vector<std::byte> everything(per_rank * static_cast<std::size_t>(session_.ranks()));
  fill(everything, abi::DataType::float32, abi::RedOp::sum, session_.rank(), session_.ranks(), seed);
  std::vector<std::byte> window(everything.begin() + static_cast<std::ptrdiff_t>(offset),
                                everything.begin() + static_cast<std::ptrdiff_t>(offset + bytes));
  const std::size_t from = std::max(offset, rank * per_rank), to = std::min(offset + bytes, (rank + 1) * per_rank);
  const std::size_t own = to > from ? to - from : 0;
  void* request = nullptr;
  while (request == nullptr) {
    require_success(session_.collnet().reduce_scatter(
                        comm_, {memory_.front(), window.data(), bytes}, receive_place(0).data(), per_rank, offset,
                        bytes, abi::DataType::float32, abi::RedOp::sum, memory_.back(), &request),
                    "ireducescatter");
  }
  finish(request);
  std::vector<std::byte> expected(own);
  fill_result(expected, abi::DataType::float32, abi::RedOp::sum, session_.ranks(), seed, from / sizeof(float));
  require(
      std::ranges::equal(expected, receive_place(0).first(own)),  // empty if the window has no byte of this rank
      "ireducescatter: the window of " + std::to_string(bytes) + " bytes at " + std::to_string(offset) + " is wrong");
}

void Group::check_flush() {
  void* request = nullptr;
  require_success(session_.collnet().flush(comm_, region_.data(), 4096, memory_.front(), &request), "iflush");
  require(request != nullptr, "iflush gave no request");
  finish(request);
}

}  // namespace tributary::cli::nccl_check
