#pragma once
// Persistent collectives. The program's handle is MPI's own persistent request, which stays inactive in MPI's eyes
// while libtributary carries the collective: each start makes a generalized request, and MPI_Wait, MPI_Test and the
// like get it in the handle's place.
#include <type_traits>
#include <vector>

#include "client/plugins/mpi/form.h"

namespace tributary::mpi {

/// Remembers that the starts of MPI's request go by libtributary's communicator `on`, which the request owns.
void remember_persistent(MPI_Request request, Call call, MPI_Comm comm, Communicator& communicator, tributary_comm* on);
/// Lets all persistent requests of a communicator that ends go by MPI from now on.
void forget_persistent(const Communicator& communicator);
/// Forgets a request that the program frees.
void forget_persistent(MPI_Request request);

/// Starts a request that goes by libtributary, and returns MPI's code. Returns nullopt for all other requests.
[[nodiscard]] std::optional<int> start_persistent(MPI_Request request);
/// Returns the generalized request of a start that has not ended in MPI's eyes; MPI_REQUEST_NULL if there is none, and
/// nullopt for requests that do not go by libtributary.
[[nodiscard]] std::optional<MPI_Request> stand_in(MPI_Request request);
/// Notes that a start has ended.
void end_persistent(MPI_Request request);
/// Returns true if the starts of a request go by libtributary.
[[nodiscard]] bool any_persistent() noexcept;

/// Makes a persistent request; the arguments are those of nonblocking(). Collective, as MPI allows it.
template <class Make, class PassOn>
int persistent(const Form<Make>& form, MPI_Request* request, const PassOn& pass_on) {
  const int code = pass_on();
  if (code != MPI_SUCCESS) return code;
  Communicator* const communicator = may_take(form.bytes) ? Communicator::of(form.comm) : nullptr;
  auto call = communicator == nullptr ? std::nullopt : form.make(*communicator);
  tributary_comm* const on = call ? communicator->reserve(form.collective, call->bytes) : nullptr;
  if (on == nullptr) {
    count_call(form.collective, Way::mpi, form.bytes);  // counts once: MPI does the starts
  } else {
    remember_persistent(*request, std::move(*call), form.comm, *communicator, on);
  }
  return code;
}

/// Puts generalized requests in the place of persistent ones while it lives, and MPI_REQUEST_NULL in the place of those
/// that are inactive: MPI gives both the same meaning, and MPICH 4.0.2 waits for inactive persistent collectives for
/// ever. Handle: MPI_Request, or Fortran's integer.
template <class Handle>
class InPlaceOfPersistent {
 public:
  InPlaceOfPersistent(int count, Handle* handles) : handles_(handles) {
    if (!any_persistent()) return;
    for (int index = 0; index < count; ++index) {
      const auto generalized = stand_in(request_of(handles[index]));
      if (!generalized) continue;
      replaced_.push_back({index, handles[index], *generalized != MPI_REQUEST_NULL});
      handles[index] = handle_of(*generalized);
    }
  }
  InPlaceOfPersistent(const InPlaceOfPersistent&) = delete;
  InPlaceOfPersistent& operator=(const InPlaceOfPersistent&) = delete;
  ~InPlaceOfPersistent() {
    for (const auto& [index, handle, started] : replaced_) {
      if (started && request_of(handles_[index]) == MPI_REQUEST_NULL) end_persistent(request_of(handle));
      handles_[index] = handle;
    }
  }

 private:
  static MPI_Request request_of(Handle handle) {
    if constexpr (std::is_same_v<Handle, MPI_Request>) {
      return handle;
    } else {
      return PMPI_Request_f2c(handle);
    }
  }
  static Handle handle_of(MPI_Request request) {
    if constexpr (std::is_same_v<Handle, MPI_Request>) {
      return request;
    } else {
      return PMPI_Request_c2f(request);
    }
  }
  struct Replaced {
    int index;
    Handle handle;
    bool started;
  };
  Handle* const handles_;
  std::vector<Replaced> replaced_;
};

/// Starts requests one after the other by `start_one(handle)`; returns the first error.
template <class Handle, class Start>
int start_each(int count, Handle* handles, const Start& start_one) {
  for (int index = 0; index < count; ++index) {
    const int code = start_one(&handles[index]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

}  // namespace tributary::mpi
