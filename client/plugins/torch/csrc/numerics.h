#pragma once

namespace tributary::torch {

/// Returns the numerics that this thread has chosen for its calls (tributary.torch.numerics): TRIBUTARY_OP_EXACT,
/// TRIBUTARY_OP_FAST, or 0 if the group's count. PyTorch hands them on to the threads that work for this thread, such
/// as those of a backward pass on a GPU. The caller needs no lock.
[[nodiscard]] int numerics_of_calls();

/// Sets them for the calling thread. The caller holds the interpreter's lock.
void choose_numerics_of_calls(int flag);

}  // namespace tributary::torch
