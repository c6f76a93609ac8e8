#pragma once

namespace tributary::tensorflow {

/// Runs `end(context)` soon, on a thread for this purpose, in the order of the calls.
///
/// When a call of the library has ended, TensorFlow runs the operators that wait for it, on the thread that reports the
/// end. One of these operators may call the library again, which the library's own threads must not do.
void end_later(void (*end)(void* context), void* context);

}  // namespace tributary::tensorflow
