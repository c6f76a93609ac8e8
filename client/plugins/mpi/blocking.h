#pragma once
// Blocking collectives: each goes by libtributary, or is passed on.
#include <chrono>

#include "client/plugins/mpi/form.h"

namespace tributary::mpi {

/// Carries out one blocking collective. `pass_on` makes the same call by MPI, with the program's own arguments.
template <class Make, class PassOn>
int blocking(const Form<Make>& form, const PassOn& pass_on) {
  if (!may_take(form.bytes)) {
    count_call(form.collective, Way::mpi, form.bytes);
    return pass_on();
  }
  Communicator* const communicator = Communicator::of(form.comm);
  const bool goes_by_mpi = communicator == nullptr || communicator->waits_for_manager();
  const auto call = goes_by_mpi ? std::nullopt : form.make(*communicator);
  const auto choice = call ? communicator->choose(form.collective, call->bytes) : Communicator::Choice{};
  count_call(form.collective, choice.way, form.bytes);
  const auto begin = std::chrono::steady_clock::now();
  const int code = choice.way == Way::tributary ? carry_out(*call, *communicator, form.comm) : pass_on();
  if (choice.trials != nullptr) {
    choice.trials->count(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return code;
}

}  // namespace tributary::mpi
