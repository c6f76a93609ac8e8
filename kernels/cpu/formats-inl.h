// Includes all headers that know a dtype's bits, in order of dependency. Included once per target, inside its
// namespace.
#include "kernels/cpu/lanes-inl.h"
//
#include "kernels/cpu/float16-inl.h"
//
#include "kernels/cpu/bfloat16-inl.h"
#include "kernels/cpu/float8-inl.h"
//
#include "kernels/cpu/elements-inl.h"
